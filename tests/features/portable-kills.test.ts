import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { splitInto } from '../support/dynamodb/shard/shards.js';
import { perform, PortableModel, type Step } from '../support/features/portable-model.js';
import {
  type FeatureSpace,
  type FeatureStore,
  type Kill,
  type Process,
  STORES,
} from '../support/features/portable-stores.js';

const LIMITS = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100_000), Limit.concurrent('slots', 8)];
const USER = { entityId: 'user-1', resource: 'gpt-4' };
const LEVELS = ['user-1', 'team'];

/** What the lease takes, and the amounts of the steps. */
interface Size {
  readonly taken: { readonly rpd: number; readonly tpd: number; readonly slots: number };
  readonly total: number;
  readonly back: number;
  readonly more: number;
}
const SMALL: Size = { taken: { rpd: 1, tpd: 500, slots: 2 }, total: 1_000, back: -600, more: 600 };
/** More than a shard has. */
const LARGE: Size = { taken: { rpd: 1, tpd: 60_000, slots: 5 }, total: 99_000, back: -70_000, more: 20_000 };

/** One step of a history, the process that makes it, and whether it is killed meanwhile. */
interface Turn {
  readonly step: Step;
  readonly by: 0 | 1;
  /** Resumes the token, like a process that has just started. */
  readonly isFresh: boolean;
  readonly kill: Kill | null;
  /** After a kill, the other process first ends the lease in another way, and only then repeats the step. */
  readonly contradicts: boolean;
  /** How many answers of the network are lost. Only on DynamoDB. */
  readonly lostAnswers: number;
}

const stepsOf = ({ total, back, more }: Size): fc.Arbitrary<Step> => {
  const totals = fc.integer({ min: 0, max: total });
  return fc.oneof(
    fc.record({ kind: fc.constant('settle' as const), tpd: totals }),
    // Few ids, so that adjusts are repeated.
    fc.record({
      kind: fc.constant('adjust' as const),
      tpd: fc.integer({ min: back, max: more }),
      id: fc.constantFrom('a', 'b', 'c'),
    }),
    fc.record({ kind: fc.constant('commit' as const), tpd: fc.option(totals) }),
    fc.record({ kind: fc.constantFrom('rollback' as const, 'release' as const, 'extend' as const) }),
  );
};
const turnsOf = (size: Size): fc.Arbitrary<readonly Turn[]> =>
  fc.array(
    fc.record({
      step: stepsOf(size),
      by: fc.constantFrom(0 as const, 1 as const),
      isFresh: fc.boolean(),
      kill: fc.option(fc.record({ at: fc.integer({ min: 0, max: 1 }), lost: fc.constantFrom('request', 'answer') })),
      contradicts: fc.boolean(),
      lostAnswers: fc.integer({ min: 0, max: 4 }),
    }),
    { minLength: 1, maxLength: 7 },
  );

/** What is taken at each level. */
async function takenAt(limiter: RateLimiter): Promise<readonly Record<string, number>[]> {
  const buckets = await Promise.all(LEVELS.map((entityId) => limiter.buckets.get({ ...USER, entityId })));
  return buckets.map((bucket) =>
    Object.fromEntries((bucket?.limits ?? []).map(({ limit, consumed }) => [limit.name, consumed])),
  );
}

/** The slots that are held count as consumed on every store. */
async function expectTaken(limiter: RateLimiter, { taken }: PortableModel): Promise<void> {
  expect(await takenAt(limiter)).toEqual(LEVELS.map(() => taken));
  for (const entityId of LEVELS) {
    expect((await limiter.available({ ...USER, entityId }))['slots']).toBe(8 - taken.slots);
  }
}

async function play(space: FeatureSpace, history: readonly Turn[], { taken }: Size): Promise<void> {
  const processes = [await space.process({ limits: LIMITS }), await space.process({ limits: LIMITS })] as const;
  const [{ limiter }] = processes;
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
  if (taken === LARGE.taken) await split(space, processes);
  const first = await limiter.acquire({ ...USER, consume: taken, portable: true, leaseTtlMs: 3_600_000 });
  const token = await first.token();
  const kept = [first, await processes[1].limiter.leases.resume(token)] as const;
  const model = new PortableModel(taken);
  // An id always stands for the same adjust.
  const adjusts = new Map<string, number>();
  const ended = new Set<Lease>();
  for (const { step: drawn, by, isFresh, kill, contradicts, lostAnswers } of history) {
    const step = drawn.kind === 'adjust' ? { ...drawn, tpd: adjusts.get(drawn.id) ?? drawn.tpd } : drawn;
    if (step.kind === 'adjust') adjusts.set(step.id, step.tpd);
    const own = processes[by];
    const lease = isFresh ? await own.limiter.leases.resume(token) : kept[by];
    own.kill(kill);
    if (kill === null && lostAnswers > 0) loseAnswers(space, lostAnswers);
    const outcome = await perform(lease, step);
    own.kill(null);
    space.dynamo?.world.proxy.heal();
    if (outcome === 'killed') await recover(processes[by === 0 ? 1 : 0], token, step, model, contradicts);
    else {
      const expected = model.apply(step);
      // The object that has ended the lease refuses by itself what it did not repeat.
      expect([step, outcome]).toEqual([step, ended.has(lease) && step.kind === 'adjust' ? 'closed' : expected]);
      if (outcome === 'done' && (step.kind === 'commit' || step.kind === 'rollback')) ended.add(lease);
    }
    await expectTaken(limiter, model);
  }
}

/** The user gets two shards and the team four, and both processes know them. */
async function split({ dynamo }: FeatureSpace, processes: readonly Process[]): Promise<void> {
  const take = async ({ limiter }: Process): Promise<void> =>
    (await limiter.acquire({ ...USER, consume: { tpd: 1 } })).rollback();
  await take(processes[0] as Process);
  if (dynamo === undefined) return;
  for (const [entityId, count] of [
    ['user-1', 2],
    ['team', 4],
  ] as const) {
    await splitInto(count, dynamo.world, dynamo.space, { ...USER, entityId });
  }
  for (const one of processes) await take(one);
}

/** Another process continues after a process was killed, without knowing how far that one came. */
async function recover(
  other: Process,
  token: string,
  step: Step,
  model: PortableModel,
  contradicts: boolean,
): Promise<void> {
  if (contradicts && model.state === 'open' && showsInTotals(step, model)) {
    const end: Step = step.kind === 'commit' ? { kind: 'rollback' } : { kind: 'commit', tpd: null };
    // Only the store knows whether the step came first. The entity's own level decides it for all levels.
    const [own] = await takenAt(other.limiter);
    if (endOf(step) === null && own?.['tpd'] !== model.taken.tpd) model.apply(step);
    const outcome = await perform(await other.limiter.leases.resume(token), end);
    model.apply(outcome === 'done' ? end : step);
    if (outcome === 'done') await expectTaken(other.limiter, model);
  }
  const repeated = await perform(await other.limiter.leases.resume(token), step);
  expect([step, repeated]).toEqual([step, model.apply(step)]);
}

function endOf({ kind }: Step): string | null {
  return kind === 'commit' || kind === 'rollback' ? kind : null;
}

/** An adjust by nothing changes no total, so that only its id would show that it was made. */
function showsInTotals(step: Step, { taken }: PortableModel): boolean {
  return step.kind !== 'adjust' || Math.max(0, taken.tpd + step.tpd) !== taken.tpd;
}

function loseAnswers({ dynamo }: FeatureSpace, times: number): void {
  dynamo?.world.proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem', 'TransactWriteItems'], times });
}

describe.each(STORES)('portable leases of killed processes on %s', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  test('every step counts exactly once, wherever its process is killed and whichever process repeats it', async () => {
    const numRuns = name === 'memory' ? 100 : name === 'file' ? 15 : 10;
    await fc.assert(
      fc.asyncProperty(turnsOf(SMALL), async (history) => play(await store.space(), history, SMALL)),
      { numRuns },
    );
  }, 60_000);

  test.runIf(name === 'dynamodb')(
    'every step counts exactly once also over several shards of each level',
    async () => {
      await fc.assert(
        fc.asyncProperty(turnsOf(LARGE), async (history) => play(await store.space(), history, LARGE)),
        { numRuns: 15 },
      );
    },
    60_000,
  );

  test.runIf(name === 'dynamodb')('a commit that was refused on one shard of two charges nothing', async () => {
    const space = await store.space();
    const [here, there] = [await space.process({ limits: LIMITS }), await space.process({ limits: LIMITS })];
    await here.limiter.entities.create({ id: 'team' });
    await here.limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await split(space, [here, there]);
    const lease = await here.limiter.acquire({ ...USER, consume: LARGE.taken, portable: true });
    const resumed = await there.limiter.leases.resume(await lease.token());
    const denied = space.dynamo?.world.proxy.inject(fault.accessDenied(), {
      when: ({ operation, body }) => operation !== 'GetItem' && JSON.stringify(body).includes('BUCKET#user-1#gpt-4#1'),
    });
    await expect(lease.commit({ tpd: 81_200 })).rejects.toMatchObject({ code: 'backend.denied' });
    denied?.release();
    await resumed.commit({ tpd: 64_000 });
    expect(await takenAt(here.limiter)).toEqual(LEVELS.map(() => ({ rpd: 1, tpd: 64_000, slots: 0 })));
  });
});
