import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Backend } from '../../src/backend.js';
import { file } from '../../src/backends/embedded/file/file.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { Limit } from '../../src/core/limit.js';
import type { AcquireRequest } from '../../src/limiter/acquire/request.js';
import type { LimiterOptions } from '../../src/limiter/options.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { type Outage, outage } from '../../src/testing/outage.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';

const KEY = 'key-7f3a';
const RPM = Limit.perMinute('rpm', 60, { cost: 1, reserve: { batch: 0.5 } });
const OPTIONS: LimiterOptions = { limits: [RPM, Limit.perMinute('tpm', 500), Limit.concurrent('slots', 4)] };

/** Two processes on one store, and the outage that reaches the first of them. */
interface Opened {
  readonly limiter: RateLimiter;
  readonly operator: RateLimiter;
  readonly stop: () => Promise<void>;
}

const folder = mkdtempSync(join(tmpdir(), 'headgate-revoked-'));
const worlds: DynamoWorld[] = [];
const opened: RateLimiter[] = [];
const outages: Outage[] = [];
afterAll(async () => {
  for (const store of outages) store.end();
  for (const limiter of opened) await limiter.close();
  for (const world of worlds) await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function embedded(own: Backend, ofOperator: Backend, options: LimiterOptions): Promise<Opened> {
  const store = outage(own);
  outages.push(store);
  const clock = fakeClock();
  const limiter = await RateLimiter.open(store.backend, { ...OPTIONS, ...options, clock });
  const operator = await RateLimiter.open(ofOperator, { ...OPTIONS, clock });
  opened.push(limiter, operator);
  return { limiter, operator, stop: async () => store.start() };
}

async function onMemory(options: LimiterOptions): Promise<Opened> {
  const store = memory();
  return embedded(store, store, options);
}

async function onFile(options: LimiterOptions): Promise<Opened> {
  const path = join(folder, `${opened.length}.db`);
  return embedded(file({ path }), file({ path }), options);
}

async function onDynamoDB(options: LimiterOptions): Promise<Opened> {
  const world = await startWorld();
  worlds.push(world);
  const space = await world.space();
  const limiter = await space.open({ ...OPTIONS, ...options });
  return { limiter, operator: await space.open(OPTIONS), stop: async () => world.proxy.refuse() };
}

const ASKS: readonly Omit<AcquireRequest, 'entityId' | 'resource'>[] = [
  {},
  { consume: { rpm: 1 } },
  { consume: { rpm: 0 } },
  { consume: { tpm: 1 } },
  { consume: { slots: 1 } },
  { consume: { rpm: 1, tpm: 100, slots: 1 } },
  { consume: { tpm: 100 }, atMost: 'tpm' },
  { consume: { rpm: 1 }, priority: 'batch' },
  { consume: { rpm: 1 }, leaseTtlMs: 60_000 },
  { consume: { rpm: 1 }, portable: true },
  { consume: { rpm: 1, tpm: 1 }, atomic: true },
  { consume: { other: 1 }, limits: [Limit.perMinute('other', 5)] },
];

const STORES: readonly (readonly [name: string, open: (options: LimiterOptions) => Promise<Opened>])[] = [
  ['memory', onMemory],
  ['file', onFile],
  ...(ENGINE.missing ? [] : [['dynamodb', onDynamoDB] as const]),
];

describe.each(STORES)('a revoked key on %s', (_, open) => {
  test.each(['allow', 'local'] as const)(
    'a key that another process has revoked is refused on every resource and with every limit, also under the policy %s once this process knows it and the store is down',
    async (onUnavailable) => {
      const { limiter, operator, stop } = await open({ onUnavailable });
      await operator.pause({ entityId: KEY, forMs: 'forever', reason: 'the key was leaked' });
      const expectRefusals = async (resources: readonly string[]): Promise<void> => {
        for (const resource of resources) {
          for (const ask of ASKS) {
            const decision = await limiter.tryAcquire({ entityId: KEY, resource, ...ask });
            expect([resource, ask, decision]).toMatchObject([resource, ask, { granted: false, reason: 'paused' }]);
          }
          await expect(limiter.acquire({ entityId: KEY, resource })).rejects.toMatchObject({ code: 'entity.paused' });
        }
      };
      await expectRefusals(['gpt-4', 'claude']);
      await stop();
      await expectRefusals(['gpt-4', 'claude', 'never-asked-before']);
      expect((await limiter.tryAcquire({ entityId: 'key-2', resource: 'gpt-4', consume: { rpm: 1 } })).granted).toBe(
        true,
      );
    },
  );
});
