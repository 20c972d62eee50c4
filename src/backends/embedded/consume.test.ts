import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LevelAsk } from '../../backend.js';
import { credit, effectiveTokens } from '../../core/bucket/bucket.js';
import { type Amount, amountOf, type Holder } from '../../core/bucket/decide.js';
import { Limit } from '../../core/limit.js';
import { type Bucket, reclaimExpired, copyBucket } from './bucket.js';
import { adjust, consume, extend, peek } from './consume.js';
import { MemorySpace } from './memory-space.js';

const RUNS = { numRuns: 1_000 };
/** Half past an hour. */
const NOW_MS = 1_800_001_800_000;
const DAY_MS = 86_400_000;

const bucketOf = (space: MemorySpace): Bucket | undefined => space.readBucket('user', 'gpt-4');

function levelOf(limits: readonly Limit[], consumes: Record<string, number>, sequence = 0): LevelAsk {
  const asks = Object.entries(consumes).map(([name, amount]) => ({ name, milli: amount * 1_000 }));
  return { entityId: 'user', resource: 'gpt-4', limits, version: { sequence, openedAtMs: 0 }, asks, holder: null };
}

/** With a holder for the requested slots, by the ask's own limits. */
function holding(level: LevelAsk, nowMs: number, lifeMs: number): LevelAsk {
  const isSlots = ({ name }: Amount): boolean =>
    level.limits.find((limit) => limit.name === name)?.kind === 'concurrent';
  const slots = level.asks.filter((ask) => isSlots(ask) && ask.milli > 0);
  const holder: Holder = { expiresAtMs: nowMs + lifeMs, acquiredAtMs: nowMs, slots, rates: null, caller: null };
  return slots.length > 0 ? { ...level, holder } : level;
}

function snapshot(space: MemorySpace): Bucket | undefined {
  const bucket = bucketOf(space);
  return bucket && copyBucket(bucket);
}

describe('a slow limit beside a busy one', () => {
  const limits = [Limit.perDay('daily', 10), Limit.perSecond('rps', 5)];

  test('a slow limit gains exactly its 10 over a day with an acquire each second', () => {
    const space = new MemorySpace();
    const midnight = Date.UTC(2027, 0, 15);
    const ask = (consumes: Record<string, number>, nowMs: number) =>
      consume(space, { leaseId: null, levels: [levelOf(limits, consumes)] }, nowMs).kind;
    expect(ask({ daily: 10, rps: 1 }, midnight)).toBe('granted');
    for (let second = 1; second <= 86_400; second++) {
      expect(ask({ rps: 1 }, midnight + second * 1_000)).toBe('granted');
    }
    const { baseMs, limits: accounts } = bucketOf(space)!;
    const { limit, tokensMilli } = accounts.find((account) => account.limit.name === 'daily')!;
    const held = (nowMs: number) => effectiveTokens(limit, tokensMilli, credit(limit, baseMs, nowMs));
    expect([held(midnight + DAY_MS - 1), held(midnight + DAY_MS)]).toEqual([9_999, 10_000]);
  });

  test('a slow limit grants exactly its 10 over a day with an ask each second', () => {
    const space = new MemorySpace();
    let granted = 0;
    const ask = (consumes: Record<string, number>, nowMs: number) =>
      consume(space, { leaseId: null, levels: [levelOf(limits, consumes)] }, nowMs).kind === 'granted';
    ask({ daily: 10 }, NOW_MS);
    for (let second = 1; second <= 86_400; second++) {
      if (ask({ daily: 1, rps: 1 }, NOW_MS + second * 1_000)) granted += 1;
      else ask({ rps: 1 }, NOW_MS + second * 1_000);
    }
    expect(granted).toBe(10);
  });
});

const rate = fc.record({
  capacity: fc.integer({ min: 1, max: 12 }),
  refillAmount: fc.integer({ min: 1, max: 9 }),
  refillPeriodMs: fc.constantFrom(1, 7, 977, 1_000, 60_000),
});
const limits = fc
  .record({ rpm: rate, tpm: rate, slots: fc.nat({ max: 4 }) })
  .map(({ rpm, tpm, slots }) => [Limit.custom('rpm', rpm), Limit.custom('tpm', tpm), Limit.concurrent('slots', slots)]);
const consumes = fc.record(
  { rpm: fc.nat({ max: 6 }), tpm: fc.nat({ max: 14 }), slots: fc.nat({ max: 3 }) },
  { requiredKeys: [] },
);
const pauseMs = fc.oneof(fc.constant(0), fc.nat({ max: 50 }), fc.nat({ max: 3_000 }));

interface Ask {
  readonly consumes: { readonly rpm?: number; readonly tpm?: number; readonly slots?: number };
  readonly pauseMs: number;
  readonly lifeMs: number;
}

const asks: fc.Arbitrary<readonly Ask[]> = fc.array(
  fc.record({ consumes, pauseMs, lifeMs: fc.integer({ min: 1, max: 6_000 }) }),
  { maxLength: 40 },
);

/** Runs asks in order. Returns the space, and the time of each grant. */
function play(of: readonly Limit[], played: readonly Ask[]) {
  const space = new MemorySpace();
  const granted: { readonly nowMs: number; readonly level: LevelAsk }[] = [];
  let nowMs = NOW_MS;
  for (const [at, { consumes: asked, pauseMs: pause, lifeMs }] of played.entries()) {
    nowMs += pause;
    const level = holding(levelOf(of, asked), nowMs, lifeMs);
    const outcome = consume(space, { leaseId: `lease-${at}`, levels: [level] }, nowMs);
    if (outcome.kind === 'granted') granted.push({ nowMs, level });
  }
  return { space, granted, nowMs };
}

describe('consuming', () => {
  test('consume grants over any window at most the capacity plus the refill of the window', () => {
    fc.assert(
      fc.property(limits, asks, (of, played) => {
        const { granted } = play(of, played);
        for (const limit of of.filter(({ kind }) => kind === 'rate')) {
          for (let from = 0; from < granted.length; from++) {
            let sum = 0;
            for (const { nowMs, level } of granted.slice(from)) {
              sum += Number(amountOf(level.asks, limit.name) ?? 0);
              const most = limit.capacityMilli + Number(credit(limit, granted[from]!.nowMs, nowMs));
              expect(sum).toBeLessThanOrEqual(most);
            }
          }
        }
      }),
      RUNS,
    );
  });

  test('consume grants after the announced wait, and not 1 ms earlier, for rates and for slots', () => {
    fc.assert(
      fc.property(limits, asks, consumes, (of, played, asked) => {
        const { space, nowMs } = play(of, played);
        const ask = (atMs: number) => consume(space, { leaseId: 'last', levels: [levelOf(of, asked)] }, atMs);
        const first = ask(nowMs);
        if (first.kind !== 'denied') return;
        const isImpossible = of.some(({ name, capacity }) => (asked[name as 'rpm'] ?? 0) > capacity);
        expect(first.retryAfterMs === null).toBe(isImpossible);
        if (first.retryAfterMs === null) return;
        expect(ask(nowMs + first.retryAfterMs - 1).kind).toBe('denied');
        expect(ask(nowMs + first.retryAfterMs).kind).toBe('granted');
      }),
      RUNS,
    );
  });

  test('a denied consume changes nothing, except that it reclaims expired holders unless the ask is impossible', () => {
    fc.assert(
      fc.property(limits, asks, consumes, pauseMs, (of, played, asked, pause) => {
        const { space, nowMs: lastMs } = play(of, played);
        const nowMs = lastMs + pause;
        const before = snapshot(space);
        const outcome = consume(space, { leaseId: 'last', levels: [holding(levelOf(of, asked), nowMs, 5)] }, nowMs);
        if (outcome.kind !== 'denied') return;
        if (before !== undefined && outcome.reason !== 'impossible') reclaimExpired(before, nowMs);
        expect(snapshot(space)).toEqual(before);
      }),
      RUNS,
    );
  });

  test('a consume that one level denies takes from no level', () => {
    fc.assert(
      fc.property(limits, asks, consumes, (of, played, asked) => {
        const { space, nowMs } = play(of, played);
        const parent = { ...levelOf([Limit.perDay('rpm', 1)], asked), entityId: 'parent' };
        const child = levelOf(of, asked);
        const [untouched, before] = [snapshot(space), snapshot(space)];
        if (consume(space, { leaseId: 'last', levels: [child, parent] }, nowMs).kind === 'granted') {
          expect(asked.rpm ?? 0).toBeLessThanOrEqual(1);
          return;
        }
        expect(space.readBucket('parent', 'gpt-4')).toBeUndefined();
        // The child reclaims expired holders only if it was short itself.
        if (before !== undefined) reclaimExpired(before, nowMs);
        expect([untouched, before]).toContainEqual(snapshot(space));
      }),
      RUNS,
    );
  });

  test('peek predicts consume and changes nothing', () => {
    fc.assert(
      fc.property(limits, asks, consumes, pauseMs, (of, played, asked, pause) => {
        const { space, nowMs: lastMs } = play(of, played);
        const nowMs = lastMs + pause;
        const before = snapshot(space);
        const [answer] = peek(space, [levelOf(of, asked)], nowMs);
        expect(snapshot(space)).toEqual(before);
        const fits = answer!.verdicts.every(({ limit, waitMs }) => !(limit.name in asked) || waitMs === 0);
        const outcome = consume(space, { leaseId: 'last', levels: [levelOf(of, asked)] }, nowMs);
        expect(outcome.kind).toBe(fits ? 'granted' : 'denied');
      }),
      RUNS,
    );
  });
});

describe('a lease', () => {
  const of = [Limit.perDay('rpd', 10), Limit.concurrent('slots', 1)];
  const asked = holding(levelOf(of, { rpd: 4, slots: 1 }), NOW_MS, 1_000);
  const ref = levelOf(of, {});
  const change = { ...ref, amounts: [], holder: 'release' } as const;

  function tokens(space: MemorySpace, name: string) {
    return bucketOf(space)?.limits.find(({ limit }) => limit.name === name)?.tokensMilli;
  }

  test('a lease is given back once, however often the request is sent', () => {
    const space = new MemorySpace();
    consume(space, { leaseId: 'id', levels: [asked] }, NOW_MS);
    expect(adjust(space, { leaseId: 'id', levels: [change] }, NOW_MS)).toEqual([{ kind: 'done', holderLost: false }]);
    expect(adjust(space, { leaseId: 'id', levels: [change] }, NOW_MS)).toEqual([{ kind: 'done', holderLost: true }]);
    expect([tokens(space, 'slots'), tokens(space, 'rpd')]).toEqual([1_000, 6_000]);
  });

  test('an extended lease is not reclaimed, and an expired one cannot be extended', () => {
    const space = new MemorySpace();
    consume(space, { leaseId: 'id', levels: [asked] }, NOW_MS);
    expect(extend(space, { leaseId: 'id', levels: [ref], expiresAtMs: NOW_MS + 2_000 }, NOW_MS + 900)).toBe(true);
    const next = { leaseId: 'next', levels: [asked] };
    expect(consume(space, next, NOW_MS + 1_500)).toMatchObject({ kind: 'denied', retryAfterMs: 500 });
    expect(consume(space, next, NOW_MS + 2_000).kind).toBe('granted');
    expect(extend(space, { leaseId: 'id', levels: [ref], expiresAtMs: NOW_MS + 9_000 }, NOW_MS + 2_000)).toBe(false);
  });

  test('a lease that settles after its expiry gave everything back is charged the whole amount again', () => {
    const space = new MemorySpace();
    const rates = [{ name: 'rpd', milli: 4_000 }];
    const refunding = { ...asked, holder: { ...asked.holder!, rates } };
    consume(space, { leaseId: 'id', levels: [refunding] }, NOW_MS);
    consume(space, { leaseId: 'next', levels: [levelOf(of, { slots: 1 })] }, NOW_MS + 1_000);
    expect(tokens(space, 'rpd')).toBe(10_000);
    const amounts = [{ name: 'rpd', fromMilli: 4_000, toMilli: 5_000 }];
    const settling = { ...ref, amounts, holder: 'release', refundsOnExpiry: true } as const;
    expect(adjust(space, { leaseId: 'id', levels: [settling] }, NOW_MS + 1_000)).toMatchObject([{ holderLost: true }]);
    expect(tokens(space, 'rpd')).toBe(5_000);
  });
});
