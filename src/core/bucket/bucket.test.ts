import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { credit, effectiveTokens, nextBase, type Rate, waitForTokens } from './bucket.js';
import { add, type Int, sub, toInt } from '../int.js';

const RUNS = { numRuns: 2_000 };
const DAY_MS = 86_400_000;
const NOW_MS = 1_800_000_000_000;

const amount = fc.oneof(fc.nat({ max: 100 }), fc.nat({ max: 1_000_000 }), fc.integer({ min: 1, max: 1e12 }));
const period = fc.oneof(
  fc.integer({ min: 1, max: 100 }),
  fc.constantFrom(977, 1_000, 60_000, 3_600_000, DAY_MS, 366 * DAY_MS),
  fc.integer({ min: 1, max: 366 * DAY_MS }),
);
/** Whole limits and shares of limits: a share's capacity is not whole tokens, its period is longer. */
const rate: fc.Arbitrary<Rate> = fc
  .record({ capacity: amount, refill: amount, period, part: fc.nat({ max: 999 }) })
  .map(({ capacity, refill, period: refillPeriodMs, part }) => ({
    kind: 'rate',
    capacityMilli: Math.min(capacity * 1_000 + part, 1e15),
    refillMilli: refill * 1_000,
    refillPeriodMs,
  }));
const instant = fc.oneof(
  fc.integer({ min: NOW_MS - 1_000, max: NOW_MS + 100_000 }),
  fc.integer({ min: 0, max: 8e12 }),
  fc.nat({ max: 5_000 }),
);
const debt = fc.oneof(
  fc.nat({ max: 100_000 }),
  fc.integer({ min: 0, max: 1e15 }),
  fc.bigInt({ min: 0n, max: 2n ** 70n }).map(toInt),
);
const tokens = (capacityMilli: number): fc.Arbitrary<Int> =>
  fc.oneof(
    fc.integer({ min: 0, max: capacityMilli }),
    debt.map((below) => sub(0, below)),
  );
const account = rate.chain((numbers) => fc.record({ rate: fc.constant(numbers), held: tokens(numbers.capacityMilli) }));

/** The refill since the epoch by the definition, in numbers of any size. */
function fallen({ refillMilli, refillPeriodMs }: Rate, atMs: number): bigint {
  return (BigInt(atMs) * BigInt(refillMilli)) / BigInt(refillPeriodMs);
}

function balance(of: Rate, held: Int, baseMs: number, nowMs: number): Int {
  return effectiveTokens(of, held, credit(of, baseMs, nowMs));
}

describe('credit', () => {
  test('the credit is exactly the difference of the refills since the epoch', () => {
    fc.assert(
      fc.property(rate, instant, instant, (of, a, b) => {
        const [from, to] = a < b ? [a, b] : [b, a];
        expect(BigInt(credit(of, from, to))).toBe(fallen(of, to) - fallen(of, from));
      }),
      RUNS,
    );
  });

  test('the credit is the same however often it is computed', () => {
    fc.assert(
      fc.property(rate, fc.array(instant, { minLength: 2, maxLength: 12 }), (of, instants) => {
        const times = instants.toSorted((a, b) => a - b);
        let total: Int = 0;
        for (let at = 1; at < times.length; at++) total = add(total, credit(of, times[at - 1]!, times[at]!));
        expect(total).toBe(credit(of, times[0]!, times.at(-1)!));
      }),
      RUNS,
    );
  });

  test('the credits of every single millisecond add up to the credit of one step', () => {
    const third: Rate = { kind: 'rate', capacityMilli: 1_000, refillMilli: 1_000, refillPeriodMs: 3_000 };
    const tenPerDay: Rate = { kind: 'rate', capacityMilli: 10_000, refillMilli: 10_000, refillPeriodMs: DAY_MS };
    for (const of of [third, tenPerDay]) {
      let total: Int = 0;
      for (let at = 0; at < 30_000; at++) total = add(total, credit(of, NOW_MS + at, NOW_MS + at + 1));
      expect(total).toBe(credit(of, NOW_MS, NOW_MS + 30_000));
    }
    expect(credit(third, NOW_MS, NOW_MS + 30_000)).toBe(10_000);
    expect(credit(tenPerDay, NOW_MS, NOW_MS + DAY_MS)).toBe(10_000);
  });

  test('the credit is 0 if time goes back', () => {
    fc.assert(
      fc.property(rate, instant, instant, (of, a, b) => {
        expect(credit(of, Math.max(a, b), Math.min(a, b))).toBe(0);
        expect(credit(of, a, a)).toBe(0);
      }),
      RUNS,
    );
  });

  test('the credit of slots is 0', () => {
    fc.assert(
      fc.property(amount, instant, instant, (capacityMilli, a, b) => {
        expect(credit({ kind: 'concurrent', capacityMilli, refillMilli: 0, refillPeriodMs: 0 }, a, b)).toBe(0);
      }),
      RUNS,
    );
  });
});

describe('effective tokens', () => {
  test('the balance of a rate is never above its capacity', () => {
    fc.assert(
      fc.property(account, instant, instant, ({ rate: of, held }, baseMs, nowMs) => {
        expect(balance(of, held, baseMs, nowMs) <= of.capacityMilli).toBe(true);
      }),
      RUNS,
    );
  });

  test('the balance is the same whether the cap is applied at every step or at the last', () => {
    fc.assert(
      fc.property(account, fc.array(instant, { minLength: 2, maxLength: 8 }), ({ rate: of, held }, instants) => {
        const times = instants.toSorted((a, b) => a - b);
        let settled = held;
        for (let at = 1; at < times.length; at++) settled = balance(of, settled, times[at - 1]!, times[at]!);
        expect(settled).toBe(balance(of, held, times[0]!, times.at(-1)!));
      }),
      RUNS,
    );
  });

  test('the balance includes a debt in full', () => {
    fc.assert(
      fc.property(rate, debt, instant, instant, (of, owed, a, b) => {
        const [baseMs, nowMs] = a < b ? [a, b] : [b, a];
        const expected = fallen(of, nowMs) - fallen(of, baseMs) - BigInt(owed);
        const capped = expected > BigInt(of.capacityMilli) ? BigInt(of.capacityMilli) : expected;
        expect(BigInt(balance(of, sub(0, owed), baseMs, nowMs))).toBe(capped);
      }),
      RUNS,
    );
  });

  test('the balance of slots is not capped', () => {
    expect(
      effectiveTokens({ kind: 'concurrent', capacityMilli: 1_000, refillMilli: 0, refillPeriodMs: 0 }, 5_000, 0),
    ).toBe(5_000);
  });
});

describe('the wait for tokens', () => {
  const question = account.chain(({ rate: of, held }) =>
    fc.record({
      of: fc.constant(of),
      held: fc.constant(held),
      baseMs: instant,
      nowMs: instant,
      need: fc.oneof(fc.integer({ min: 0, max: of.capacityMilli }), fc.constant(of.capacityMilli)),
    }),
  );

  test('the wait for tokens is exact: waiting that long grants, 1 ms less does not', () => {
    let waited = 0;
    fc.assert(
      fc.property(question, ({ of, held, baseMs, nowMs, need }) => {
        const waitMs = waitForTokens(of, held, baseMs, need, nowMs);
        const fits = balance(of, held, baseMs, nowMs) >= need;
        if (fits) expect(waitMs).toBe(0);
        else if (of.refillMilli === 0) expect(waitMs).toBeNull();
        else {
          expect(waitMs).toBeGreaterThan(0);
          const thenMs = nowMs + waitMs!;
          // Debts of 2^70 take longer than the longest wait that can be expressed, 2^53 ms.
          if (thenMs >= Number.MAX_SAFE_INTEGER) return;
          expect(balance(of, held, baseMs, thenMs) >= need).toBe(true);
          expect(balance(of, held, baseMs, thenMs - 1) < need).toBe(true);
          waited += 1;
        }
      }),
      { numRuns: 5_000 },
    );
    expect(waited).toBeGreaterThan(100);
  });

  test('the wait for tokens is the smallest T of the definition, also for debts above 2^53', () => {
    fc.assert(
      fc.property(question, ({ of, held, baseMs, nowMs, need }) => {
        fc.pre(of.refillMilli > 0 && balance(of, held, baseMs, nowMs) < need);
        const target = fallen(of, baseMs) + BigInt(need) - BigInt(held);
        const [ra, rp] = [BigInt(of.refillMilli), BigInt(of.refillPeriodMs)];
        const waitMs = (target * rp + ra - 1n) / ra - BigInt(nowMs);
        const most = BigInt(Number.MAX_SAFE_INTEGER);
        expect(waitForTokens(of, held, baseMs, need, nowMs)).toBe(Number(waitMs < most ? waitMs : most));
      }),
      RUNS,
    );
  });

  test('the wait for tokens is null above the capacity and for a rate that does not refill', () => {
    fc.assert(
      fc.property(account, instant, instant, ({ rate: of, held }, baseMs, nowMs) => {
        expect(waitForTokens(of, held, baseMs, of.capacityMilli + 1, nowMs)).toBeNull();
        expect(waitForTokens({ ...of, refillMilli: 0 }, -1, baseMs, 0, nowMs)).toBeNull();
      }),
      RUNS,
    );
  });

  test('the wait for tokens starts at the base when the clock is behind it', () => {
    const perSecond: Rate = { kind: 'rate', capacityMilli: 10_000, refillMilli: 1_000, refillPeriodMs: 1_000 };
    expect(waitForTokens(perSecond, 0, NOW_MS, 1_000, NOW_MS - 5_000)).toBe(6_000);
  });
});

test('a base that must move increases by at least 1 ms', () => {
  fc.assert(
    fc.property(instant, instant, (baseMs, nowMs) => {
      const next = nextBase(baseMs, nowMs);
      expect(next).toBe(nowMs > baseMs ? nowMs : baseMs + 1);
    }),
    RUNS,
  );
});
