import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { splitInto } from '../support/dynamodb/shard/shards.js';
import { runs } from '../support/runs.js';
import {
  askFor,
  createLevels,
  LevelsModel,
  type LevelStep,
  LIMITS,
  perform,
  type Size,
  takenAt,
  USER,
} from '../support/features/portable-levels.js';
import {
  type FeatureSpace,
  type FeatureStore,
  type HeldCall,
  type Process,
  STORES,
} from '../support/features/portable-stores.js';

const SMALL: Size = { rpd: 1, tpd: 500, slots: 2 };
/** More than a shard has. */
const LARGE: Size = { rpd: 1, tpd: 60_000, slots: 5 };

/**
 * One step, the process that makes it, and what happens to its write of the team: it is made, it is late, or the process is
 * killed before it. `frees`: which of the late writes is made after this step.
 */
interface Turn {
  readonly step: LevelStep;
  readonly by: 0 | 1;
  readonly team: 'made' | 'late' | 'killed';
  readonly frees: number;
}

const turnsOf = ({ tpd }: Size): fc.Arbitrary<readonly Turn[]> => {
  const amounts = (least: number) =>
    fc.record(
      { tpd: fc.integer({ min: least * tpd, max: tpd + 30_000 }), usd: fc.integer({ min: least * 12, max: 20 }) },
      { requiredKeys: [] },
    );
  const steps = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle' as const), amounts: amounts(0) }) },
    {
      weight: 4,
      arbitrary: fc
        .record({ amounts: amounts(-1), id: fc.constantFrom('a', 'b', 'c', 'd') })
        .map(({ amounts: deltas, id }) => ({ kind: 'adjust' as const, amounts: deltas, id })),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('commit' as const), amounts: amounts(0) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('rollback' as const, 'release' as const) }) },
  );
  return fc.array(
    fc.record({
      step: steps,
      by: fc.constantFrom(0 as const, 1 as const),
      team: fc.constantFrom('made' as const, 'late' as const, 'killed' as const),
      frees: fc.nat({ max: 4 }),
    }),
    { minLength: 1, maxLength: 8 },
  );
};

async function play(space: FeatureSpace, turns: readonly Turn[], taken: Size): Promise<void> {
  const processes = [await space.process({ limits: LIMITS }), await space.process({ limits: LIMITS })] as const;
  const [{ limiter }] = processes;
  await createLevels(limiter);
  if (taken === LARGE) await split(space, processes);
  const token = await (await limiter.acquire(askFor(taken))).token();
  const model = new LevelsModel(taken);
  const late: { readonly call: HeldCall; readonly step: Promise<unknown> }[] = [];
  const free = async (at: number): Promise<void> => {
    const [one] = late.splice(at, 1);
    one?.call.release();
    await one?.step;
  };
  const adjusts = new Map<string, LevelStep>();
  let isCutOff = false;
  for (const { step: drawn, by, team, frees } of turns) {
    // An id always stands for the same adjust.
    const step = drawn.kind === 'adjust' ? (adjusts.get(drawn.id) ?? drawn) : drawn;
    if (step.kind === 'adjust') adjusts.set(step.id, step);
    const own = processes[by];
    const lease = await own.limiter.leases.resume(token);
    const call = own.hold(1);
    if (team !== 'late') call.release();
    own.kill(team === 'killed' ? { at: 1, lost: 'request' } : null);
    const made = perform(lease, step);
    if (team === 'late') await Promise.race([call.made, made]);
    else isCutOff = (await made) === 'killed' || (team === 'killed' && isCutOff);
    own.kill(null);
    const expected = model.apply(step);
    if (team === 'late')
      late.push({ call, step: made.then((outcome) => expect([step, outcome]).toEqual([step, expected])) });
    else if (team === 'made') expect([step, await made]).toEqual([step, expected]);
    expect((await takenAt(limiter))[0]).toEqual(model.user);
    await free(frees);
  }
  while (late.length > 0) await free(0);
  // Any further step brings the team what a killed process has not.
  if (isCutOff) await perform(await processes[0].limiter.leases.resume(token), { kind: 'release' });
  if (isCutOff) model.apply({ kind: 'release' });
  expect(await takenAt(limiter)).toEqual([model.user, model.team]);
  await space.clock.advance(3_700_000);
  await (await limiter.acquire({ ...USER, consume: { slots: 8, jobs: 8 } })).rollback();
  model.expire();
  expect(await takenAt(limiter)).toEqual([model.user, model.team]);
}

/** The user gets two shards and the team four, and both processes know them. */
async function split({ dynamo }: FeatureSpace, processes: readonly Process[]): Promise<void> {
  const take = async ({ limiter }: Process): Promise<void> =>
    (await limiter.acquire({ ...USER, consume: { tpd: 1 } })).rollback();
  await take(processes[0] as Process);
  if (dynamo === undefined) return;
  await splitInto(2, dynamo.world, dynamo.space, USER);
  await splitInto(4, dynamo.world, dynamo.space, { ...USER, entityId: 'team' });
  for (const one of processes) await take(one);
}

describe.each(STORES)('the levels of a portable lease on %s', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  test('agree after every history of two processes, whose writes of the parent are late or never made, and also after the expiry', async () => {
    const numRuns = runs(name === 'memory' ? 800 : 80);
    await fc.assert(
      fc.asyncProperty(turnsOf(SMALL), async (turns) => play(await store.space(), turns, SMALL)),
      { numRuns },
    );
  }, 300_000);

  test.runIf(name === 'dynamodb')(
    'agree also if each level has several shards',
    async () => {
      await fc.assert(
        fc.asyncProperty(turnsOf(LARGE), async (turns) => play(await store.space(), turns, LARGE)),
        { numRuns: runs(40) },
      );
    },
    300_000,
  );
});
