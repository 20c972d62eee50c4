import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../tests/support/runs.js';
import {
  applyWrite,
  credit,
  effectiveTokens,
  type LimitWrite,
  type Move,
  planMove,
  planRebase,
  type Rate,
  writeHolds,
} from './bucket.js';
import { add, type Int, sub, toInt } from '../int.js';

const RUNS = { numRuns: runs(5_000) };
const NOW_MS = 1_800_000_000_000;

/** Small numbers, so that guesses often hit the bounds, and huge ones, so that sums exceed 2^53. */
const scale = fc.constantFrom(1, 1_000, 1e12);
const rateAt = (unit: number): fc.Arbitrary<Rate> =>
  fc.record({
    kind: fc.constant('rate' as const),
    capacityMilli: fc.integer({ min: 0, max: 12 }).map((n) => n * unit),
    refillMilli: fc.integer({ min: 0, max: 9 }).map((n) => n * unit),
    refillPeriodMs: fc.constantFrom(1, 7, 977, 60_000),
  });
const tokensAt = (unit: number): fc.Arbitrary<Int> =>
  fc.tuple(fc.integer({ min: -9_100, max: 14 }), fc.integer({ min: -2, max: 2 })).map(([n, off]) => add(n * unit, off));
const amountAt = (unit: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: 14 }).map((n) => n * unit);
const elapsed = fc.oneof(fc.constant(0), fc.integer({ min: -5, max: 20 }), fc.integer({ min: 0, max: 200_000 }));

/** A stored balance, a client's image of it (right, nearly right or wrong), and the move to write. */
const scene = scale.chain((unit) =>
  fc
    .record({
      rate: rateAt(unit),
      stored: tokensAt(unit),
      guess: fc.option(tokensAt(unit)),
      elapsedMs: elapsed,
      move: fc.record({
        takeMilli: fc.option(amountAt(unit)),
        reserveMilli: fc.oneof(fc.constant(0), amountAt(unit)),
        debitMilli: fc.oneof(fc.constant(0), amountAt(unit)),
        refundMilli: fc.oneof(fc.constant(0), amountAt(unit)),
      }),
    })
    .map(({ guess, ...rest }) => ({ ...rest, seen: guess ?? rest.stored })),
);

/** The balance afterwards of an account that settles at every operation; null: it refuses. */
function exact(rate: Rate, stored: Int, credited: Int, move: Move): bigint | null {
  const capacity = BigInt(rate.capacityMilli);
  const capped = (value: bigint): bigint => (rate.refillPeriodMs !== 0 && value > capacity ? capacity : value);
  const before = capped(BigInt(stored) + BigInt(credited));
  if (move.takeMilli !== null && before < BigInt(move.takeMilli) + BigInt(move.reserveMilli ?? 0)) return null;
  return capped(before - BigInt(move.takeMilli ?? 0) - BigInt(move.debitMilli) + BigInt(move.refundMilli));
}

function balanceAfter(rate: Rate, write: LimitWrite, stored: Int, credited: Int): bigint {
  return BigInt(effectiveTokens(rate, applyWrite(write, stored), credited));
}

describe('a planned write', () => {
  test('a planned write is exact wherever its condition holds, whatever image it was planned from', () => {
    fc.assert(
      fc.property(scene, ({ rate, stored, seen, elapsedMs, move }) => {
        const credited = credit(rate, NOW_MS, NOW_MS + elapsedMs);
        const write = planMove(rate, seen, credited, move);
        if (!writeHolds(write, stored)) return;
        expect(balanceAfter(rate, write, stored, credited)).toBe(exact(rate, stored, credited, move));
      }),
      { numRuns: runs(20_000) },
    );
  });

  test('a write that was planned from the stored state holds for every ask that fits', () => {
    fc.assert(
      fc.property(scene, ({ rate, stored, elapsedMs, move }) => {
        const credited = credit(rate, NOW_MS, NOW_MS + elapsedMs);
        const write = planMove(rate, stored, credited, move);
        expect(writeHolds(write, stored)).toBe(exact(rate, stored, credited, move) !== null);
      }),
      RUNS,
    );
  });

  test('applying a write whose condition fails would give a wrong balance or grant an ask that does not fit', () => {
    fc.assert(
      fc.property(scene, ({ rate, stored, seen, elapsedMs, move: drawn }) => {
        const move = { ...drawn, refundMilli: 0 };
        const credited = credit(rate, NOW_MS, NOW_MS + elapsedMs);
        const write = planMove(rate, seen, credited, move);
        if (writeHolds(write, stored)) return;
        const wanted = exact(rate, stored, credited, move);
        expect(wanted === null || wanted !== balanceAfter(rate, write, stored, credited)).toBe(true);
      }),
      { numRuns: runs(20_000) },
    );
  });

  test('the condition of a take above the capacity never holds, however full the bucket looks', () => {
    const rate: Rate = { kind: 'rate', capacityMilli: 10_000, refillMilli: 1_000, refillPeriodMs: 1_000 };
    const move = { takeMilli: 10_001, debitMilli: 0, refundMilli: 0 };
    for (const seen of [-5_000, 0, 9_999, 10_000, 50_000]) {
      const write = planMove(rate, seen, 3_000, move);
      for (const stored of [-5_000, 7_000, 7_001, 10_000, 50_000]) expect(writeHolds(write, stored)).toBe(false);
    }
  });

  test('a write of slots has a lower bound and no upper bound', () => {
    const slots: Rate = { kind: 'concurrent', capacityMilli: 4_000, refillMilli: 0, refillPeriodMs: 0 };
    const write = planMove(slots, 4_000, 0, { takeMilli: 1_000, debitMilli: 0, refundMilli: 0 });
    expect(write).toEqual({ write: 'add', deltaMilli: -1_000, atLeastMilli: 1_000, atMostMilli: null });
  });
});

describe('a take', () => {
  test('a take that is given back restores the balance, at once and at any later time', () => {
    fc.assert(
      fc.property(scene, fc.nat({ max: 100_000 }), ({ rate, stored, elapsedMs, move: { takeMilli } }, laterMs) => {
        const nowMs = NOW_MS + elapsedMs;
        const credited = credit(rate, NOW_MS, nowMs);
        const take = planMove(rate, stored, credited, { takeMilli: takeMilli ?? 0, debitMilli: 0, refundMilli: 0 });
        fc.pre(writeHolds(take, stored));
        const taken = applyWrite(take, stored);
        const giveBack = { takeMilli: null, debitMilli: 0, refundMilli: takeMilli ?? 0 };
        const restored = applyWrite(planMove(rate, taken, credited, giveBack), taken);
        for (const atMs of [nowMs, nowMs + laterMs]) {
          const since = credit(rate, NOW_MS, atMs);
          expect(effectiveTokens(rate, restored, since)).toBe(effectiveTokens(rate, stored, since));
        }
      }),
      RUNS,
    );
  });

  test('a take of 0 is refused in debt and granted at a balance of 0', () => {
    const rate: Rate = { kind: 'rate', capacityMilli: 10, refillMilli: 1, refillPeriodMs: 1 };
    const zero = planMove(rate, -5, 5, { takeMilli: 0, debitMilli: 0, refundMilli: 0 });
    expect([writeHolds(zero, -6), writeHolds(zero, -5)]).toEqual([false, true]);
  });
});

describe('a debit', () => {
  test('a debit is never refused by the state that it was planned from, and is charged in full', () => {
    fc.assert(
      fc.property(scene, ({ rate, stored, elapsedMs, move: { debitMilli } }) => {
        const credited = credit(rate, NOW_MS, NOW_MS + elapsedMs);
        const write = planMove(rate, stored, credited, { takeMilli: null, debitMilli, refundMilli: 0 });
        expect(writeHolds(write, stored)).toBe(true);
        const before = effectiveTokens(rate, stored, credited);
        expect(toInt(balanceAfter(rate, write, stored, credited))).toBe(sub(before, debitMilli));
      }),
      RUNS,
    );
  });
});

describe('moving the base', () => {
  const change = scale.chain((unit) =>
    fc
      .record({
        before: rateAt(unit),
        after: rateAt(unit),
        stored: tokensAt(unit),
        guess: fc.option(tokensAt(unit)),
        elapsedMs: fc.integer({ min: 1, max: 200_000 }),
      })
      .map(({ guess, ...rest }) => ({ ...rest, seen: guess ?? rest.stored })),
  );

  test('moving the base credits at the old rate and caps at the smaller capacity', () => {
    fc.assert(
      fc.property(change, ({ before, after, stored, seen, elapsedMs }) => {
        const next = NOW_MS + elapsedMs;
        const write = planRebase(before, after, seen, NOW_MS, next);
        const settled = effectiveTokens(before, stored, credit(before, NOW_MS, next));
        const clamped = settled < after.capacityMilli ? settled : after.capacityMilli;
        const isExact = applyWrite(write, stored) === clamped;
        if (seen === stored) expect(writeHolds(write, stored)).toBe(true);
        expect(writeHolds(write, stored)).toBe(isExact);
      }),
      { numRuns: runs(20_000) },
    );
  });

  test('moving the base keeps held slots, even if they are more than the new capacity', () => {
    fc.assert(
      fc.property(amountAt(1_000), amountAt(1_000), tokensAt(1_000), (had, has, stored) => {
        const slots = (capacityMilli: number): Rate => ({
          kind: 'concurrent',
          capacityMilli,
          refillMilli: 0,
          refillPeriodMs: 0,
        });
        const write = planRebase(slots(had), slots(has), stored, NOW_MS, NOW_MS + 1);
        expect(writeHolds(write, sub(stored, 999))).toBe(true);
        expect(sub(has, applyWrite(write, stored))).toBe(sub(had, stored));
      }),
      RUNS,
    );
  });
});

describe('the trace of the published design', () => {
  // 90 of 100 tokens, 100 a minute; two threads that both saw them take 3 and 7, one second later.
  const rate: Rate = { kind: 'rate', capacityMilli: 100_000, refillMilli: 100_000, refillPeriodMs: 60_000 };

  function trace(t0: number) {
    const credited = credit(rate, t0, t0 + 1_000);
    let stored: Int = 90_000;
    for (const takeMilli of [3_000, 7_000]) {
      const write = planMove(rate, 90_000, credited, { takeMilli, debitMilli: 0, refundMilli: 0 });
      expect(writeHolds(write, stored)).toBe(true);
      stored = applyWrite(write, stored);
    }
    return { stored, effective: effectiveTokens(rate, stored, credited) };
  }

  // 1.67 is 1,666 2/3 millitokens. The refill is in whole millitokens, so it is 1,666 or 1,667, depending on when the
  // second starts, and 5,000 in any three seconds. It counts once and is never written, and the second writer needs no
  // retry although the first has written since.
  test('the trace of the published design ends at 81.666 if the second starts with a minute', () => {
    expect(trace(NOW_MS)).toEqual({ stored: 80_000, effective: 81_666 });
  });

  test('the trace of the published design ends at 81.667 if the second starts 1 ms later', () => {
    expect(trace(NOW_MS + 1)).toEqual({ stored: 80_000, effective: 81_667 });
  });

  test('the trace of the published design has refilled exactly 5 tokens after any three seconds', () => {
    for (let off = 0; off < 60; off++) expect(credit(rate, NOW_MS + off, NOW_MS + off + 3_000)).toBe(5_000);
  });
});
