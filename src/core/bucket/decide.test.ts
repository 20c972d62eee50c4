import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../tests/support/runs.js';
import {
  type Amount,
  amountOf,
  type BucketState,
  decide,
  fitsAll,
  type Holder,
  limitStatus,
  wholeTokens,
} from './decide.js';
import { conclude } from './conclude.js';
import { toInt } from '../int.js';
import { Limit } from '../limit.js';

const RUNS = { numRuns: runs(2_000) };
const BASE_MS = 1_800_000_000_000;
/** Some of these are members of every object and must work like any other name. */
const NAMES = ['rpm', 'constructor', 'toString', 'valueOf', 'slots'];

const rateLimit = fc
  .record({
    name: fc.constantFrom(...NAMES),
    capacity: fc.nat({ max: 20 }),
    refillAmount: fc.integer({ min: 1, max: 9 }),
    refillPeriodMs: fc.constantFrom(1, 977, 1_000, 60_000),
  })
  .map(({ name, ...rule }): Limit => Limit.custom(name, rule));
const slotLimit = fc
  .tuple(fc.constantFrom(...NAMES), fc.nat({ max: 6 }))
  .map(([name, capacity]): Limit => Limit.concurrent(name, capacity));
const limits = fc.uniqueArray(fc.oneof(rateLimit, slotLimit), {
  minLength: 1,
  maxLength: 4,
  selector: ({ name }) => name,
});

/** Holders of some of the slots. The slots that they hold are the ones that are not free. */
const holders = (of: readonly Limit[]): fc.Arbitrary<ReadonlyMap<string, Holder>> =>
  fc
    .array(fc.record({ lifeMs: fc.integer({ min: 1, max: 5_000 }), slots: fc.array(fc.nat({ max: 3 })) }), {
      maxLength: 4,
    })
    .map((list) => {
      const named = of.filter(({ kind }) => kind === 'concurrent');
      return new Map(
        list.map(({ lifeMs, slots }, at) => [
          `lease-${at}`,
          {
            expiresAtMs: BASE_MS + lifeMs,
            acquiredAtMs: BASE_MS,
            slots: named.map(({ name }, index) => ({ name, milli: (slots[index] ?? 0) * 1_000 })),
            rates: null,
            caller: null,
          },
        ]),
      );
    });
const heldOf = (held: ReadonlyMap<string, Holder>, name: string): number =>
  [...held.values()].reduce((sum, { slots }) => sum + Number(amountOf(slots, name) ?? 0), 0);

const bucket: fc.Arbitrary<BucketState> = limits.chain((of) =>
  fc
    .record({ held: holders(of), balances: fc.tuple(...of.map(() => fc.integer({ min: -30_000, max: 20_000 }))) })
    .map(({ held, balances }) => ({
      baseMs: BASE_MS,
      holders: held,
      limits: of.map((limit, at) => ({
        limit,
        tokensMilli:
          limit.kind === 'rate'
            ? Math.min(balances[at]!, limit.capacityMilli)
            : limit.capacityMilli - heldOf(held, limit.name),
      })),
    })),
);
const asks: fc.Arbitrary<readonly Amount[]> = fc.uniqueArray(
  fc.record({ name: fc.constantFrom(...NAMES), milli: fc.nat({ max: 22 }).map((n) => n * 1_000) }),
  { minLength: 1, selector: ({ name }) => name },
);
const now = fc.nat({ max: 3_000 }).map((ms) => BASE_MS + ms);

function isGranted(of: BucketState, asked: readonly Amount[], nowMs: number): boolean {
  return conclude([{ verdicts: decide(of, asked, nowMs) }]).granted;
}

describe('a decision', () => {
  test('a decision has a verdict for every existing limit that is asked, and for no other', () => {
    fc.assert(
      fc.property(bucket, asks, now, (of, asked, nowMs) => {
        const verdicts = decide(of, asked, nowMs);
        const expected = of.limits.map(({ limit }) => limit).filter(({ name }) => amountOf(asked, name) !== undefined);
        expect(verdicts.map(({ limit }) => limit)).toEqual(expected);
        for (const { limit, requestedMilli } of verdicts) expect(requestedMilli).toBe(amountOf(asked, limit.name));
      }),
      RUNS,
    );
  });

  test('a decision about several limits has the verdict of each limit alone', () => {
    fc.assert(
      fc.property(bucket, asks, now, fc.func(fc.boolean()), (of, asked, nowMs, isChosen) => {
        const all = decide(of, asked, nowMs);
        const chosen = asked.filter(({ name }) => isChosen(name));
        expect(decide(of, chosen, nowMs)).toEqual(all.filter(({ limit }) => isChosen(limit.name)));
      }),
      RUNS,
    );
  });

  test('an ask is granted if and only if every limit has enough', () => {
    fc.assert(
      fc.property(bucket, asks, now, (of, asked, nowMs) => {
        const fits = of.limits.every(({ limit, tokensMilli }) => {
          const { capacityMilli, refillMilli, refillPeriodMs } = limit;
          const fallen = (ms: number): bigint => (BigInt(ms) * BigInt(refillMilli)) / BigInt(refillPeriodMs || 1);
          const refilled = BigInt(tokensMilli) + fallen(nowMs) - fallen(BASE_MS);
          const capped = limit.kind === 'rate' && refilled > capacityMilli ? BigInt(capacityMilli) : refilled;
          return capped >= (amountOf(asked, limit.name) ?? -Infinity);
        });
        expect(isGranted(of, asked, nowMs)).toBe(fits);
      }),
      RUNS,
    );
  });

  test('the check without verdicts finds room exactly if every verdict of the decision needs no wait', () => {
    fc.assert(
      fc.property(bucket, asks, now, (of, asked, nowMs) => {
        const fits = decide(of, asked, nowMs).every(({ waitMs }) => waitMs === 0);
        expect(fitsAll(of, asked, nowMs)).toBe(fits);
      }),
      RUNS,
    );
  });

  test('adding a limit never admits more', () => {
    let granted = 0;
    fc.assert(
      fc.property(bucket, asks, now, fc.nat({ max: 3 }), (of, asked, nowMs, leftOut) => {
        const fewer = { ...of, limits: of.limits.filter((_, at) => at !== leftOut) };
        if (!isGranted(of, asked, nowMs)) return;
        granted += 1;
        expect(isGranted(fewer, asked, nowMs)).toBe(true);
      }),
      RUNS,
    );
    expect(granted).toBeGreaterThan(0);
  });

  test('a decision over several levels grants all or denies with the longest wait', () => {
    fc.assert(
      fc.property(fc.array(bucket, { minLength: 1, maxLength: 3 }), asks, now, (chain, asked, nowMs) => {
        const levels = chain.map((of) => ({ verdicts: decide(of, asked, nowMs) }));
        const waits = levels.flatMap(({ verdicts }) => verdicts.map(({ waitMs }) => waitMs));
        const conclusion = conclude(levels);
        expect(conclusion.granted).toBe(waits.every((waitMs) => waitMs === 0));
        if (conclusion.granted) return;
        const longest = waits.includes(null) ? null : Math.max(...waits.map(Number));
        expect(conclusion.retryAfterMs).toBe(longest);
        expect(conclusion.reason).toBe(longest === null ? 'impossible' : 'exhausted');
      }),
      RUNS,
    );
  });
});

describe('an ask', () => {
  test('an ask for 0 is granted while the balance is not negative', () => {
    fc.assert(
      fc.property(bucket, now, (of, nowMs) => {
        for (const { limit } of of.limits) {
          const [verdict] = decide(of, [{ name: limit.name, milli: 0 }], nowMs);
          expect(verdict!.waitMs === 0).toBe(verdict!.effectiveMilli >= 0);
        }
      }),
      RUNS,
    );
  });

  test('an ask is impossible, without a wait, exactly if it is above the capacity', () => {
    fc.assert(
      fc.property(bucket, now, (of, nowMs) => {
        for (const { limit } of of.limits) {
          const ask = (milli: number) => conclude([{ verdicts: decide(of, [{ name: limit.name, milli }], nowMs) }]);
          expect(ask(limit.capacityMilli + 1_000)).toEqual({
            granted: false,
            reason: 'impossible',
            retryAfterMs: null,
          });
          expect(ask(limit.capacityMilli)).not.toMatchObject({ reason: 'impossible' });
        }
      }),
      RUNS,
    );
  });

  test('an ask up to the capacity is not impossible if slots are missing that no holder has', () => {
    fc.assert(
      fc.property(bucket, now, (of, nowMs) => {
        const short = { ...of, limits: of.limits.map((balance) => ({ ...balance, tokensMilli: -1_000_000 })) };
        for (const { limit } of of.limits.filter((balance) => balance.limit.kind === 'concurrent')) {
          const verdicts = decide(short, [{ name: limit.name, milli: limit.capacityMilli }], nowMs);
          expect(conclude([{ verdicts }])).toEqual({ granted: false, reason: 'exhausted', retryAfterMs: 1_000 });
          expect(limitStatus('e', 'r', verdicts[0]!, false)).toMatchObject({ exceeded: true, retryAfterMs: 1_000 });
        }
      }),
      RUNS,
    );
  });

  test('an ask for rates fits after the announced wait, and not 1 ms earlier', () => {
    fc.assert(
      fc.property(bucket, asks, now, (of, asked, nowMs) => {
        const rates = { ...of, limits: of.limits.filter(({ limit }) => limit.kind === 'rate') };
        const conclusion = conclude([{ verdicts: decide(rates, asked, nowMs) }]);
        fc.pre(!conclusion.granted && conclusion.retryAfterMs !== null);
        const atMs = nowMs + (conclusion.granted ? 0 : conclusion.retryAfterMs);
        expect(isGranted(rates, asked, atMs)).toBe(true);
        expect(isGranted(rates, asked, atMs - 1)).toBe(false);
      }),
      RUNS,
    );
  });

  test('an ask for slots waits until just enough holders will have expired', () => {
    fc.assert(
      fc.property(bucket, asks, (of, asked) => {
        const slots = { ...of, limits: of.limits.filter(({ limit }) => limit.kind === 'concurrent') };
        const conclusion = conclude([{ verdicts: decide(slots, asked, BASE_MS) }]);
        fc.pre(!conclusion.granted && conclusion.retryAfterMs !== null);
        const atMs = BASE_MS + (conclusion.granted ? 0 : conclusion.retryAfterMs);
        const fits = (thenMs: number): boolean => {
          const left = new Map([...of.holders].filter(([, { expiresAtMs }]) => expiresAtMs > thenMs));
          const free = (limit: Limit): number => limit.capacityMilli - heldOf(left, limit.name);
          return slots.limits.every(({ limit }) => free(limit) >= (amountOf(asked, limit.name) ?? -Infinity));
        };
        expect([fits(atMs), fits(atMs - 1)]).toEqual([true, false]);
      }),
      RUNS,
    );
  });
});

describe('a status', () => {
  const limit = Limit.perMinute('toString', 10);
  const verdict = { limit, creditedMilli: 0, effectiveMilli: 4_999, requestedMilli: 2_000, waitMs: 0 };

  test('a status shows the balance after the decision, in whole tokens rounded down', () => {
    expect(limitStatus('e', 'r', verdict, true)).toEqual({
      entityId: 'e',
      resource: 'r',
      limit,
      available: 2,
      requested: 2,
      exceeded: false,
      retryAfterMs: 0,
    });
    const denied = { ...verdict, effectiveMilli: -1, waitMs: 7 };
    expect(limitStatus('e', 'r', denied, false)).toMatchObject({ available: -1, exceeded: true, retryAfterMs: 7 });
    const impossible = { ...verdict, requestedMilli: 11_000, waitMs: null };
    expect(limitStatus('e', 'r', impossible, false)).toMatchObject({ exceeded: true, retryAfterMs: null });
  });

  test('a status rounds balances of any size down', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (milli) => {
        const rest = ((milli % 1_000n) + 1_000n) % 1_000n;
        expect(wholeTokens(toInt(milli))).toBe(Number((milli - rest) / 1_000n));
      }),
      RUNS,
    );
  });
});
