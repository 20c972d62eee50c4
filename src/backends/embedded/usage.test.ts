import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LevelAsk, UsageRecord } from '../../backend.js';
import { type Amount, amountOf, type Holder } from '../../core/bucket/decide.js';
import { changesBy } from '../../core/bucket/holder-rules.js';
import { Limit } from '../../core/limit.js';
import { USAGE_WINDOWS, type UsageWindow, windowStart } from '../../core/usage/usage.js';
import { adjust, consume } from './consume.js';
import { MemorySpace } from './memory-space.js';
import { queryUsage } from './usage.js';

const HOUR_MS = 3_600_000;
/** Ten minutes before the end of a leap day that ends a month. */
const NOW_MS = Date.UTC(2028, 2, 1) - 600_000;

interface Step {
  readonly does: 'consume' | 'adjust' | 'query';
  /** Which of two buckets of the resource: the stored one, or the one of per-call limits. */
  readonly own: boolean;
  readonly sequence: number;
  readonly amounts: readonly Amount[];
  readonly pauseMs: number;
}

/** a and b change their numbers and kinds, and are removed and added; c never changes. */
const CONFIGS: readonly (readonly Limit[])[] = [
  [Limit.perHour('a', 20), Limit.perMinute('b', 9), Limit.perMinute('c', 50)],
  [Limit.concurrent('a', 3), Limit.perMinute('c', 50)],
  [Limit.perHour('a', 9), Limit.concurrent('b', 2), Limit.perMinute('c', 50)],
  [Limit.perMinute('b', 4), Limit.perMinute('c', 50)],
  [Limit.perHour('a', 30), Limit.perMinute('b', 9), Limit.perMinute('c', 50)],
];

const amounts = fc.uniqueArray(
  fc.record({ name: fc.constantFrom('a', 'b', 'c'), milli: fc.nat({ max: 6 }).map((n) => n * 1_000) }),
  { minLength: 1, selector: ({ name }) => name },
);
const step: fc.Arbitrary<Step> = fc.record({
  does: fc.constantFrom('consume' as const, 'consume' as const, 'adjust' as const, 'query' as const),
  own: fc.boolean(),
  sequence: fc.nat({ max: CONFIGS.length - 1 }),
  amounts,
  // Clocks may also go back.
  pauseMs: fc.oneof(
    fc.nat({ max: 60_000 }),
    fc.integer({ min: -20 * 60_000, max: 40 * 60_000 }),
    fc.nat({ max: 30 * HOUR_MS }),
  ),
});

/** Grants less what was given back, by hour and limit; and the numbers of grants and expiries. */
class Expected {
  /** The rates that each lease took. */
  readonly taken = new Map<string, ReadonlySet<string>>();
  readonly #hours = new Map<number, Map<string, number>>();

  add(nowMs: number, name: string, amount: number): void {
    const hourMs = windowStart('hourly', nowMs);
    const hour = this.#hours.get(hourMs) ?? new Map<string, number>();
    this.#hours.set(hourMs, hour.set(name, (hour.get(name) ?? 0) + amount));
  }

  windows(window: UsageWindow): Record<string, Record<string, number>> {
    const sums = new Map<number, Map<string, number>>();
    for (const [hourMs, hour] of this.#hours) {
      const startMs = windowStart(window, hourMs);
      const sum = sums.get(startMs) ?? new Map<string, number>();
      for (const [name, amount] of hour) sum.set(name, (sum.get(name) ?? 0) + amount);
      sums.set(startMs, sum);
    }
    return plain([...sums]);
  }
}

/** Without zeros, and without windows that have nothing else. */
function plain(windows: readonly (readonly [number, ReadonlyMap<string, number>])[]) {
  const entries = windows.map(([startMs, counts]) => {
    return [startMs, Object.fromEntries([...counts].filter(([, amount]) => amount !== 0))] as const;
  });
  return Object.fromEntries(entries.filter(([, counts]) => Object.keys(counts).length > 0));
}

function recorded(space: MemorySpace, window: UsageWindow, pageSize: number) {
  const query = { entityId: 'user', resource: 'gpt-4', window, fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };
  const records: UsageRecord[] = [];
  for (let after: string | null = null; ;) {
    const { items, next } = queryUsage(space, query, { limit: pageSize, after }, 0);
    records.push(...items);
    if (next === null) break;
    after = next;
  }
  const starts = records.map(({ startMs }) => startMs);
  expect(starts).toEqual([...new Set(starts)].toSorted((a, b) => a - b));
  return plain(
    records.map(({ startMs, consumedMilli, acquires, expired }) => {
      const counts = [...consumedMilli].map(([name, milli]) => [name, Number(milli)] as const);
      return [startMs, new Map([...counts, ['acquires', acquires], ['expired', expired]])] as const;
    }),
  );
}

/** Runs one step on the space, and records its observable effect in the model. */
function play(space: MemorySpace, model: Expected, does: Step, leaseId: string, nowMs: number): void {
  const resource = does.own ? 'gpt-4~12345678' : 'gpt-4';
  const limits = CONFIGS[does.own ? 0 : does.sequence]!;
  const version = { sequence: does.own ? 0 : does.sequence, openedAtMs: 0 };
  const ref = { entityId: 'user', resource, limits, version };
  const isRate = (name: string): boolean =>
    space.readBucket('user', resource)?.limits.find(({ limit }) => limit.name === name)?.limit.kind === 'rate';

  if (does.does === 'adjust') {
    const deltas = does.amounts.map(({ name, milli }) => ({ name, milli: 3_000 - Number(milli) }));
    adjust(space, { leaseId, levels: [{ ...ref, amounts: changesBy(deltas), holder: 'none' }] }, nowMs);
    for (const { name, milli } of deltas) if (isRate(name)) model.add(nowMs, name, milli);
    return;
  }
  const kindOf = (name: string) => limits.find((limit) => limit.name === name)?.kind;
  const holder: Holder = {
    expiresAtMs: nowMs + 90_000,
    acquiredAtMs: nowMs,
    slots: does.amounts.filter(({ name }) => kindOf(name) === 'concurrent'),
    rates: does.amounts.filter(({ name }) => kindOf(name) === 'rate'),
    caller: null,
  };
  const level: LevelAsk = { ...ref, asks: does.amounts, holder };
  const before = new Map(space.readBucket('user', resource)?.holders);
  const outcome = consume(space, { leaseId, levels: [level] }, nowMs);
  const after = space.readBucket('user', resource)?.holders;
  for (const [id, { rates }] of before) {
    if (after?.has(id) === true) continue;
    model.add(nowMs, 'expired', 1);
    for (const { name, milli } of rates ?? []) {
      const isGivenBack = isRate(name) && model.taken.get(id)?.has(name) === true;
      if (isGivenBack) model.add(nowMs, name, -Number(milli));
    }
  }
  if (outcome.kind !== 'granted') return;
  model.add(nowMs, 'acquires', 1);
  const rates = outcome.levels[0]!.verdicts.filter(({ limit }) => limit.kind === 'rate');
  model.taken.set(leaseId, new Set(rates.map(({ limit }) => limit.name)));
  for (const { limit, requestedMilli } of rates) {
    expect(requestedMilli).toBe(amountOf(does.amounts, limit.name));
    model.add(nowMs, limit.name, requestedMilli);
  }
}

describe('usage records', () => {
  test('usage records add up, per limit and window, to the grants less what was given back', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), (steps, pageSize) => {
        const space = new MemorySpace();
        const model = new Expected();
        let nowMs = NOW_MS;
        for (const [at, does] of steps.entries()) {
          nowMs += does.pauseMs;
          if (does.does === 'query') expect(recorded(space, 'hourly', pageSize)).toEqual(model.windows('hourly'));
          else play(space, model, does, `lease-${at}`, nowMs);
        }
        for (const window of USAGE_WINDOWS) expect(recorded(space, window, pageSize)).toEqual(model.windows(window));
      }),
      { numRuns: 2_000 },
    );
  });

  test('usage records of the hour, day and month that end at the same instant are separate', () => {
    const space = new MemorySpace();
    const limits = [Limit.perMinute('a', 10)];
    const ref = { entityId: 'user', resource: 'gpt-4', limits, version: { sequence: 0, openedAtMs: 0 } };
    const midnight = Date.UTC(2028, 2, 1);
    for (const [nowMs, amount] of [
      [midnight - 1, 1],
      [midnight, 2],
    ] as const) {
      const level = { ...ref, asks: [{ name: 'a', milli: amount * 1_000 }], holder: null };
      consume(space, { leaseId: null, levels: [level] }, nowMs);
    }
    const first = { a: 1_000, acquires: 1 };
    const second = { a: 2_000, acquires: 1 };
    expect(recorded(space, 'hourly', 5)).toEqual({ [midnight - HOUR_MS]: first, [midnight]: second });
    expect(recorded(space, 'daily', 5)).toEqual({ [midnight - 24 * HOUR_MS]: first, [midnight]: second });
    expect(recorded(space, 'monthly', 5)).toEqual({ [Date.UTC(2028, 1, 1)]: first, [midnight]: second });
  });
});
