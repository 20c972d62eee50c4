import assert from 'node:assert/strict';
import type { Limit } from '../../../core/limit.js';
import { MAX_AMOUNT } from '../../../core/units.js';
import type { Lease } from '../../../limiter/lease/lease.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, times, tokensOf, listUsage, USER } from './asking.js';
import { type Fixture, type Case, limits } from './fixture.js';
import { Random } from './random.js';
import { slotModel } from './slot-model.js';

/** The simplest token bucket: one rate, refilled and capped at every operation, in bigint millitokens. */
class ModelRate {
  readonly name: string;
  readonly capacity: bigint;
  readonly #amount: bigint;
  readonly #periodMs: bigint;
  #tokens: bigint;
  #atMs: bigint;

  constructor(limit: Limit, nowMs: number) {
    this.name = limit.name;
    this.capacity = BigInt(limit.capacity) * 1_000n;
    this.#amount = BigInt(limit.refillAmount) * 1_000n;
    this.#periodMs = BigInt(limit.refillPeriodMs);
    this.#tokens = this.capacity;
    this.#atMs = BigInt(nowMs);
  }

  tokens(nowMs: number): bigint {
    const credit = this.#fallenUntil(BigInt(nowMs)) - this.#fallenUntil(this.#atMs);
    this.#atMs = BigInt(nowMs);
    this.#tokens = least(this.#tokens + credit, this.capacity);
    return this.#tokens;
  }

  /** A positive amount is taken, a negative one is given back. */
  move(tokens: number, nowMs: number): void {
    this.#tokens = least(this.tokens(nowMs) - BigInt(tokens) * 1_000n, this.capacity);
  }

  /** The first T with floor(T * amount / period) >= floor(now * amount / period) + the missing amount. */
  waitMs(tokens: number, nowMs: number): number | null {
    const missing = BigInt(tokens) * 1_000n - this.tokens(nowMs);
    if (BigInt(tokens) * 1_000n > this.capacity) return null;
    if (missing <= 0n) return 0;
    const due = this.#fallenUntil(BigInt(nowMs)) + missing;
    return Number((due * this.#periodMs + this.#amount - 1n) / this.#amount - BigInt(nowMs));
  }

  #fallenUntil(ms: bigint): bigint {
    return (ms * this.#amount) / this.#periodMs;
  }
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function floorTokens(milli: bigint): number {
  return Number(milli >= 0n ? milli / 1_000n : -((999n - milli) / 1_000n));
}

interface Scene {
  readonly fixture: Fixture;
  readonly random: Random;
  readonly limiters: readonly RateLimiter[];
  /** The entity's own rates. */
  readonly own: readonly ModelRate[];
  /** The entity's own rates and those of its parent. */
  readonly all: readonly ModelRate[];
  readonly open: Lease[];
  readonly used: Map<string, number>;
}

/** Mostly small asks, some for the whole capacity, a few for one token more. */
function amounts({ random, own }: Scene): Record<string, number> {
  const named = own.filter(() => random.whole(0, 2) > 0);
  const asked = named.length === 0 ? [random.pick(own)] : named;
  return Object.fromEntries(
    asked.map(({ name, capacity }) => {
      const whole = Number(capacity / 1_000n);
      const most = random.pick([0, 1, 1, 2, 5, whole]);
      return [name, random.whole(0, 30) === 0 ? whole + 1 : random.whole(0, Math.min(most, whole))];
    }),
  );
}

function moveAll({ all, fixture, used }: Scene, tokens: Readonly<Record<string, number>>): void {
  for (const rate of all) rate.move(tokens[rate.name] ?? 0, fixture.clock.now());
  for (const [name, count] of Object.entries(tokens)) used.set(name, (used.get(name) ?? 0) + count);
}

async function acquire(scene: Scene): Promise<void> {
  const { fixture, random, all, limiters } = scene;
  const consume = amounts(scene);
  const nowMs = fixture.clock.now();
  const asked = all.filter(({ name }) => Object.hasOwn(consume, name));
  const waits = asked.map((rate) => rate.waitMs(consume[rate.name] ?? 0, nowMs));
  const expected = waits.includes(null) ? null : Math.max(...waits.map(Number));
  const decision = await random.pick(limiters).tryAcquire(ask(consume));
  assert.deepEqual(decision.granted ? 0 : decision.retryAfterMs, expected, JSON.stringify(consume));
  if (!decision.granted) return;
  moveAll(scene, consume);
  if (scene.open.length < 20) scene.open.push(decision.lease);
}

async function correct(scene: Scene): Promise<void> {
  const { random, open, own } = scene;
  const at = random.whole(0, open.length - 1);
  const lease = open[at];
  if (lease === undefined) return;
  const before = { ...lease.consumed };
  const { name, capacity } = random.pick(own);
  // Mostly up to slightly more than was taken, sometimes far into debt.
  const most = random.whole(0, 9) === 0 ? Number(capacity / 1_000n) : (before[name] ?? 0) + 2;
  const total = random.whole(0, Math.min(most, MAX_AMOUNT));
  const verb = random.pick(['adjust', 'settle', 'rollback', 'commit'] as const);
  if (verb === 'adjust') await lease.adjust({ [name]: total - (before[name] ?? 0) });
  else if (verb === 'settle') await lease.settle({ [name]: total });
  else if (verb === 'commit') await lease.commit({ [name]: total });
  else await lease.rollback();
  if (verb === 'rollback')
    moveAll(scene, Object.fromEntries(Object.entries(before).map(([key, count]) => [key, -count])));
  else moveAll(scene, { [name]: total - (before[name] ?? 0) });
  if (verb === 'rollback' || verb === 'commit') open.splice(at, 1);
}

async function look({ fixture, random, limiters, all }: Scene): Promise<void> {
  const left = new Map<string, number>();
  for (const rate of all) {
    const tokens = floorTokens(rate.tokens(fixture.clock.now()));
    left.set(rate.name, Math.min(tokens, left.get(rate.name) ?? tokens));
  }
  assert.deepEqual(await random.pick(limiters).available(USER), Object.fromEntries(left));
}

async function play(
  fixture: Fixture,
  seed: number,
  rules: readonly string[],
  parentRules: readonly string[],
): Promise<void> {
  const random = new Random(seed);
  await fixture.clock.advance(random.whole(1, 100_000));
  const admin = await fixture.limiter();
  await admin.config.setEntityDefault(USER.entityId, { limits: limits(...rules) });
  if (parentRules.length > 0) {
    await admin.config.setEntityDefault('team', { limits: limits(...parentRules) });
    await admin.entities.create({ id: 'team' });
    await admin.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
  }
  const [own, above] = [rules, parentRules].map((level) =>
    limits(...level).map((limit) => new ModelRate(limit, fixture.clock.now())),
  );
  const scene: Scene = {
    fixture,
    random,
    limiters: [admin, ...(await Promise.all(times(2, async () => fixture.limiter())))],
    own: own ?? [],
    all: [...(own ?? []), ...(above ?? [])],
    open: [],
    used: new Map(),
  };
  for (let step = 0; step < 500; step++) {
    const kind = random.whole(0, 9);
    if (kind < 5) await acquire(scene);
    else if (kind < 7) await correct(scene);
    else if (kind < 9) await fixture.clock.advance(random.pick([1, random.whole(1, 50), random.whole(1, 3_000)]));
    else await look(scene);
  }
  const used = [...scene.used].filter(([, count]) => count !== 0);
  assert.deepEqual(tokensOf(await listUsage(fixture, admin)), [Object.fromEntries(used)]);
}

const LONG = 'one sequence of rates and one of slots take long enough in groups';

export const model: readonly Case[] = [
  {
    title: '500 random operations of three processes on one uneven rate have the results of exact arithmetic',
    run: async (fixture) => play(fixture, 1, ['rpm:7/977ms'], []),
  },
  {
    title: '500 random operations on rates from milliseconds to days have the results of exact arithmetic',
    alone: LONG,
    run: async (fixture) => play(fixture, 2, ['a:13/101ms:40', 'b:60/min:25', 'c:10/day', 'd:999983/sec'], []),
  },
  {
    title: '500 random operations on the largest numbers have the results of exact arithmetic',
    alone: LONG,
    run: async (fixture) => play(fixture, 3, ['a:999999999989/day', 'b:999999999999/7ms'], []),
  },
  {
    title: '500 random operations that cascade to a parent have the results of exact arithmetic',
    alone: LONG,
    run: async (fixture) => play(fixture, 4, ['a:11/sec:30', 'b:7/977ms:50'], ['a:5/sec:60', 'b:9/977ms']),
  },
  {
    title: '500 random operations on slots have the results of a plain list of holders',
    run: async (fixture) => slotModel(fixture, 5),
  },
];
