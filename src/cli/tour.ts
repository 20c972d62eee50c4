import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadDriver } from '../backends/embedded/file/database/driver.js';
import { systemClock } from '../clock.js';
import { isHeadgateError } from '../core/errors.js';
import { Limit } from '../core/limit.js';
import type { Decision } from '../limiter/acquire/decision.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { type FakeClock, fakeClock } from '../testing/fake-clock.js';
import { drawBars } from '../visualize/chart.js';
import { drawTable } from '../visualize/table.js';

type Print = (text: string) => void;

const HOUR_MS = 3_600_000;
/** Midnight of 2027-01-15, UTC. */
const START_MS = 1_799_971_200_000;

/** Starts a process that runs `takeFromFile`, and resolves to the number of its grants. */
export type StartTaker = (path: string) => Promise<number>;

const JOBS = 100;
const ATTEMPTS = 80;

/** Shows what Headgate does, on stores that need no set-up. Time is simulated, except in the two processes. */
export async function tour(print: Print, startTaker: StartTaker): Promise<void> {
  const clock = fakeClock(START_MS);
  print('Headgate: a tour. Time is simulated, so that there is no wait.\n');
  await showGrants(print, clock);
  await showDebt(print, clock);
  await showSlots(print, clock);
  await showCascade(print, clock);
  await showSharing(print, startTaker);
  await showUsage(print, clock);
}

async function showGrants(print: Print, clock: FakeClock): Promise<void> {
  print('1. Grants, and a denial with an exact wait (rpm: 60 a minute, at most 3 at once)');
  const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('rpm', 60, { burst: 3 })], clock });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
  for (let call = 1; call <= 4; call++) print(`   call ${call}: ${describe(await limiter.tryAcquire(ask))}`);
  await clock.advance(999);
  print(`   999 ms later: ${describe(await limiter.tryAcquire(ask))}`);
  await clock.advance(1);
  print(`   1 ms later:   ${describe(await limiter.tryAcquire(ask))}\n`);
}

async function showDebt(print: Print, clock: FakeClock): Promise<void> {
  print('2. The real cost is known afterwards: debt, and recovery (tpm: 6,000 a minute)');
  const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('tpm', 6_000)], clock });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { tpm: 500 } };
  await limiter.run(ask, async (lease) => lease.settle({ tpm: 7_000 }));
  print(`   took 500, settled 7,000: ${(await limiter.available(ask)).tpm} tokens left`);
  const waitMs = await limiter.timeUntilAvailable(ask);
  print(`   the next 500 fit in ${waitMs} ms`);
  await clock.advance(waitMs ?? 0);
  print(`   ${waitMs} ms later: ${describe(await limiter.tryAcquire(ask))}\n`);
}

async function showSlots(print: Print, clock: FakeClock): Promise<void> {
  print('3. Slots are held, and come back when their lease expires (slots: 2, leases of 30 s)');
  const limits = [Limit.concurrent('slots', 2)];
  const limiter = await RateLimiter.open('memory:', { limits, leaseTtlMs: 30_000, caller: 'tour', clock });
  const ask = { entityId: 'proj-1', resource: 'gpt-4', consume: { slots: 1 } };
  const first = await limiter.acquire(ask);
  await limiter.acquire(ask);
  print(`   two holders:        ${describe(await limiter.tryAcquire(ask))}`);
  await first.commit();
  print(`   one commits:        ${describe(await limiter.tryAcquire(ask))}`);
  await clock.advance(30_000);
  print(`   30 s, no heartbeat: ${describe(await limiter.tryAcquire(ask))}\n`);
}

async function showCascade(print: Print, clock: FakeClock): Promise<void> {
  print('4. Children spend from their parent, too (each user 100 rpm, the project 150)');
  const limiter = await RateLimiter.open('memory:', { clock });
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 100)] });
  await limiter.config.setEntityDefault('proj-1', { limits: [Limit.perMinute('rpm', 150)] });
  await limiter.entities.create({ id: 'proj-1', name: 'Production' });
  await limiter.entities.create({ id: 'alice', parentId: 'proj-1', cascade: true });
  await limiter.entities.create({ id: 'bob', parentId: 'proj-1', cascade: true });
  const ask = { resource: 'gpt-4', consume: { rpm: 80 } };
  print(`   alice asks for 80: ${describe(await limiter.tryAcquire({ ...ask, entityId: 'alice' }))}`);
  const refused = await limiter.tryAcquire({ ...ask, entityId: 'bob' });
  print(`   bob asks for 80:   ${describe(refused)}`);
  const { rpm } = await limiter.available({ entityId: 'bob', resource: 'gpt-4' });
  print(`   nothing was taken from bob, who can have what his project has left: ${rpm}\n`);
}

async function showSharing(print: Print, startTaker: StartTaker): Promise<void> {
  print(`5. Two processes on one file: ${JOBS} tokens, ${ATTEMPTS} attempts each`);
  const missing = await missingDriver();
  if (missing !== null) return print(`   Left out: ${missing}\n`);
  const folder = await mkdtemp(join(tmpdir(), 'headgate-tour-'));
  try {
    const path = join(folder, 'limits.db');
    const grants = await Promise.all([startTaker(path), startTaker(path)]);
    const rows = grants.map((granted, index) => [`process ${index + 1}`, granted] as const);
    print(`${indent(drawTable(['', 'granted'], [...rows, ['together', grants[0] + grants[1]]]))}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Why no file can be opened; null: one can. Node includes SQLite since 22.5. */
async function missingDriver(): Promise<string | null> {
  try {
    await loadDriver();
    return null;
  } catch (error) {
    if (!isHeadgateError(error)) throw error;
    return error.message;
  }
}

/** The work of each of the two processes: takes one token after the other, and resolves to the number of grants. */
export async function takeFromFile(path: string): Promise<number> {
  await using limiter = await RateLimiter.open(`file:${path}`, { limits: [Limit.perDay('jobs', JOBS)] });
  let grants = 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { granted } = await limiter.tryAcquire({ entityId: 'batch', resource: 'export', consume: { jobs: 1 } });
    if (granted) grants += 1;
    // A pause lets the other process take its share.
    await systemClock.sleep(2);
  }
  return grants;
}

async function showUsage(print: Print, clock: FakeClock): Promise<void> {
  print('6. What was used, by the hour (tokens that were consumed, net of refunds)');
  const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('tpm', 100_000)], clock });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { tpm: 1_000 } };
  for (const calls of [3, 2, 4, 9, 14, 20, 17, 8]) {
    for (let call = 0; call < calls; call++) await limiter.acquire(ask);
    await clock.advance(HOUR_MS);
  }
  const { items } = await limiter.usage.query({ ...ask, window: 'hourly' });
  const bars = items.map(({ windowStart, tokens }) => ({
    label: windowStart.toISOString().slice(11, 16),
    value: tokens['tpm'] ?? 0,
  }));
  print(indent(drawBars(bars)));
  const { total, acquires } = await limiter.usage.summary({ ...ask, window: 'daily' });
  print(`   ${total['tpm']} tokens in ${acquires} calls.\n`);
}

function describe(decision: Decision): string {
  if (decision.granted) {
    const left = decision.statuses.map(
      ({ entityId, limit, available }) => `${limit.name} of ${entityId}: ${available} left`,
    );
    return `granted (${left.join(', ')})`;
  }
  const refused = decision.violations.map(({ entityId, limit }) => `${limit.name} of ${entityId}`);
  return `denied by ${refused.join(', ')}, retry in ${decision.retryAfterMs} ms`;
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '   ');
}
