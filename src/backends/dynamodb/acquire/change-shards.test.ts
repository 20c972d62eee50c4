import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { NOW_MS } from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { shardedStore, WRITE_FAULTS, type WriteFault } from '../../../../tests/support/dynamodb/shard/sharded-store.js';
import { type HandTime, stopTimers } from '../../../../tests/support/models/hand-time.js';
import { runs, runsAll } from '../../../../tests/support/runs.js';
import { Limit } from '../../../core/limit.js';
import type { Lease } from '../../../limiter/lease/lease.js';
import { RateLimiter } from '../../../limiter/rate-limiter.js';

const RATES = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100)];
const SLOTS = Limit.concurrent('slots', 8);

type Operation = (lease: Lease) => Promise<void>;
type Amounts = Readonly<Record<string, number>>;

/** An operation of the lease. `rests`: everything in flight ends before the next operation. */
interface Move {
  readonly title: string;
  readonly operate: Operation;
  readonly faults: readonly WriteFault[];
  readonly rests: boolean;
}

interface Course {
  readonly shardCount: number;
  readonly limits: readonly Limit[];
  readonly consume: Amounts;
  readonly holder: 'none' | 'keep' | 'refund';
  readonly moves: readonly Move[];
}

const courses: fc.Arbitrary<Course> = fc
  .record({
    shardCount: fc.constantFrom(2, 2, 3, 4),
    rates: fc.constantFrom(1, 2),
    slots: fc.integer({ min: 0, max: 6 }),
    holder: fc.constantFrom('none', 'keep', 'refund'),
  })
  .chain(({ shardCount, rates, slots, holder }) => {
    const limits = [...RATES.slice(0, rates), ...(slots > 0 ? [SLOTS] : [])];
    const amounts = (amount: fc.Arbitrary<number>) => {
      const all = Object.fromEntries(RATES.slice(0, rates).map(({ name }) => [name, amount]));
      return fc.record(all, { requiredKeys: [] }).filter((drawn): drawn is Amounts => Object.keys(drawn).length > 0);
    };
    const taken = fc.record(
      Object.fromEntries(RATES.slice(0, rates).map(({ name }) => [name, fc.constantFrom(60, 90)])),
    );
    return fc.record({
      shardCount: fc.constant(shardCount),
      limits: fc.constant(limits),
      consume: taken.map((drawn): Amounts => (slots > 0 ? { ...drawn, slots } : drawn)),
      holder: fc.constant<Course['holder']>(holder),
      moves: movesOf(amounts(fc.constantFrom(0, 9, 20, 64, 80, 99)), amounts(fc.constantFrom(-30, -7, 5, 20))),
    });
  });

function movesOf(totals: fc.Arbitrary<Amounts>, deltas: fc.Arbitrary<Amounts>): fc.Arbitrary<readonly Move[]> {
  const written = fc.oneof(
    totals.map((all) => [`settle(${JSON.stringify(all)})`, (lease) => lease.settle(all)] as [string, Operation]),
    deltas.map((all) => [`adjust(${JSON.stringify(all)})`, (lease) => lease.adjust(all)] as [string, Operation]),
    totals.map((all) => [`commit(${JSON.stringify(all)})`, (lease) => lease.commit(all)] as [string, Operation]),
    fc.constantFrom<[string, Operation]>(
      ['commit()', (lease) => lease.commit()],
      ['rollback()', (lease) => lease.rollback()],
      ['release()', (lease) => lease.release()],
      ['repeat', async () => {}],
    ),
  );
  const fault = fc.constantFrom<WriteFault>(...WRITE_FAULTS, 'none', 'none', 'none');
  const move = fc.tuple(written, fc.array(fault, { maxLength: 6 }), fc.boolean());
  return fc.array(move, { minLength: 3, maxLength: 4 }).map((drawn) => {
    const moves: Move[] = [];
    for (const [[title, operate], faults, rests] of drawn) {
      const last = moves.at(-1);
      const repeated = title === 'repeat' && last !== undefined ? last : { title, operate };
      moves.push({ title: repeated.title, operate: repeated.operate, faults, rests });
    }
    return moves;
  });
}

const turn = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets time pass to the next timer whenever nothing else can happen. */
async function passUntil(isOver: () => boolean): Promise<void> {
  for (;;) {
    for (let turns = 0; turns < 3 && !isOver(); turns++) await turn();
    if (isOver()) return;
    vi.advanceTimersToNextTimer();
  }
}

/** Whether the operation resolved. */
async function made(operation: Promise<void>): Promise<boolean> {
  const told = { isOver: false, isDone: false };
  operation.then(
    () => Object.assign(told, { isOver: true, isDone: true }),
    () => Object.assign(told, { isOver: true }),
  );
  await passUntil(() => told.isOver);
  return told.isDone;
}

/** Whether something may not be as the answers said: some of them were lost. */
const isUncertain = (met: ReadonlySet<WriteFault>): boolean =>
  [...met].some((fault) => fault.startsWith('lost') || fault.startsWith('stalled'));

async function run({ shardCount, limits, consume, holder, moves }: Course): Promise<ReadonlySet<string>> {
  const store = shardedStore(limits, shardCount);
  const limiter = await RateLimiter.open(store.backend, {
    limits,
    clock: { now: () => NOW_MS },
    timeouts: { callMs: 1_000, acquireMs: 2_000 },
    onExpiry: holder === 'refund' ? 'refund' : 'keep',
    onError: () => {},
  });
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume };
  let lease: Lease | undefined;
  const acquired = limiter.acquire(holder === 'none' ? ask : { ...ask, leaseTtlMs: 60_000 });
  await made(acquired.then((granted) => void (lease = granted)));
  const log: string[] = [];
  const check = (): void => {
    for (const { name, kind } of limits) {
      if (kind === 'concurrent') continue;
      const said = (lease!.consumed[name] ?? 0) * 1_000;
      const taken = store.takenMilli(name);
      const seen = { [name]: taken, log };
      if (isUncertain(store.met)) expect(seen).toEqual({ [name]: Math.max(taken, said), log });
      else expect(seen).toEqual({ [name]: said, log });
    }
  };
  log.push(`${JSON.stringify(consume)} of ${shardCount}, holder: ${holder}`);
  check();
  for (const { title, operate, faults, rests } of moves) {
    store.start(faults);
    const isDone = await made(operate(lease!));
    log.push(`${title} [${faults.join('; ')}] ${isDone ? 'done' : 'failed'}${rests ? ', rests' : ''}`);
    if (rests) await passUntil(() => vi.getTimerCount() === 0);
    // A release corrects no amounts. The next operation does.
    if (isDone && title !== 'release()') check();
    if (lease!.state === 'committed' || lease!.state === 'rolled-back') break;
  }
  store.start([]);
  await passUntil(() => vi.getTimerCount() === 0);
  if (lease!.state !== 'committed' && lease!.state !== 'rolled-back') {
    expect({ isDone: await made(lease!.commit()), log }).toEqual({ isDone: true, log });
  }
  await passUntil(() => vi.getTimerCount() === 0);
  check();
  for (const { name, kind, capacity } of limits) {
    if (kind === 'concurrent')
      expect({ [name]: store.slotsMilli(name), log }).toEqual({ [name]: capacity * 1_000, log });
  }
  const closing = limiter.close();
  await made(closing);
  return store.met;
}

let time: HandTime;
beforeAll(() => void (time = stopTimers()));
afterAll(() => time[Symbol.dispose]());

const move = (title: string, operate: Operation, ...faults: WriteFault[]): Move => ({
  title,
  operate,
  faults,
  rests: false,
});
const settle = (amounts: Amounts, ...faults: WriteFault[]): Move =>
  move(`settle(${JSON.stringify(amounts)})`, (lease) => lease.settle(amounts), ...faults);
const commit = (amounts: Amounts, ...faults: WriteFault[]): Move =>
  move(`commit(${JSON.stringify(amounts)})`, (lease) => lease.commit(amounts), ...faults);
const adjust = (amounts: Amounts, ...faults: WriteFault[]): Move =>
  move(`adjust(${JSON.stringify(amounts)})`, (lease) => lease.adjust(amounts), ...faults);
const rollback = move('rollback()', (lease) => lease.rollback());

const LOST_THRICE = ['lost, landed', 'lost, landed', 'lost, landed'] as const;

/** The lease takes 50 and 10 from its two shards. */
const COURSES: readonly (readonly [string, Course['holder'], readonly Move[]])[] = [
  [
    'a refund of one shard, then a change that got no answer in time and is repeated',
    'keep',
    [settle({ rpd: 20 }, 'none', 'throttled on'), commit({ rpd: 50 }, 'stalled, not landed'), commit({ rpd: 50 })],
  ],
  [
    'a refund of one shard, then one of another limit that got no answer in time, then a rollback',
    'none',
    [settle({ rpd: 30 }, 'none', 'denied'), adjust({ tpd: -10 }, 'stalled, not landed'), rollback],
  ],
  [
    'a charge of one shard that the next change lowers, whose answer is lost',
    'keep',
    [settle({ rpd: 80 }, 'none', 'denied'), settle({ rpd: 64 }, ...LOST_THRICE), settle({ rpd: 64 })],
  ],
  [
    'a commit whose last answer came too late, repeated',
    'keep',
    [commit({ rpd: 80 }, 'none', 'slow'), commit({ rpd: 80 })],
  ],
  [
    'a commit whose last shard is throttled to the end',
    'none',
    [commit({ rpd: 80 }, 'none', 'throttled on'), commit({ rpd: 80 })],
  ],
  [
    'a settle of a shard whose holder was reclaimed, repeated because another shard refused it',
    'refund',
    [settle({ rpd: 64 }, 'reclaimed', 'none', 'denied'), settle({ rpd: 64 })],
  ],
  [
    'a release that finds one of two holders reclaimed, then a commit',
    'refund',
    [move('release()', (lease) => lease.release(), 'none', 'reclaimed'), commit({ rpd: 60 })],
  ],
];

test.each(COURSES)('the store has what the lease says after %s', async (_, holder, moves) => {
  await run({ shardCount: 2, limits: RATES, consume: { rpd: 60, tpd: 60 }, holder, moves });
});

test('whatever becomes of the writes of a lease on several shards, the store has at least what the lease says', async () => {
  const met = new Set<string>();
  await fc.assert(
    fc.asyncProperty(courses, async (course) => {
      for (const fault of await run(course)) met.add(fault);
    }),
    { numRuns: runs(8_000) },
  );
  if (runsAll) expect([...met].toSorted()).toEqual([...WRITE_FAULTS].toSorted());
}, 600_000);
