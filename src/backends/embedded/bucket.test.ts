import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { credit, effectiveTokens } from '../../core/bucket/bucket.js';
import { type Amount, decide, type Holder } from '../../core/bucket/decide.js';
import type { Int } from '../../core/int.js';
import { Limit } from '../../core/limit.js';
import { type Bucket, createBucket, isIdle, move, reclaimExpired, release, settle, take, hold } from './bucket.js';

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;

const version = (sequence: number) => ({ sequence, openedAtMs: 0 });
const bucketWith = (...limits: readonly Limit[]): Bucket => createBucket(limits, version(0), NOW_MS);

function spend(bucket: Bucket, asks: readonly Amount[], nowMs: number, holder?: readonly [string, Holder]): void {
  take(bucket, decide(bucket, asks, nowMs));
  if (holder !== undefined) hold(bucket, ...holder);
}

function holding(name: string, milli: number, expiresAtMs = NOW_MS + HOUR_MS): Holder {
  return { expiresAtMs, acquiredAtMs: NOW_MS, slots: [{ name, milli }], rates: null, caller: null };
}

function available(bucket: Bucket, nowMs: number): Record<string, Int> {
  const entries = bucket.limits.map(({ limit, tokensMilli }) => {
    return [limit.name, effectiveTokens(limit, tokensMilli, credit(limit, bucket.baseMs, nowMs))] as const;
  });
  return Object.fromEntries(entries);
}

function consumed(bucket: Bucket, name: string): Int | undefined {
  return bucket.limits.find(({ limit }) => limit.name === name)?.consumedMilli;
}

describe('settling a bucket to other rules', () => {
  test('raising a limit adds no tokens', () => {
    const bucket = bucketWith(Limit.perMinute('rpm', 60));
    spend(bucket, [{ name: 'rpm', milli: 30_000 }], NOW_MS);
    expect(settle(bucket, { limits: [Limit.perMinute('rpm', 600)], version: version(1) }, NOW_MS + 10_000)).toBe(true);
    expect(available(bucket, NOW_MS + 10_000)).toEqual({ rpm: 40_000 });
    expect(available(bucket, NOW_MS + 11_000)).toEqual({ rpm: 50_000 });
  });

  test('cutting a limit clamps to its capacity, and keeps a debt', () => {
    const bucket = bucketWith(Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 60));
    move(bucket, 'rate', [{ name: 'tpm', milli: 100_000 }], NOW_MS);
    settle(bucket, { limits: [Limit.perMinute('rpm', 6), Limit.perMinute('tpm', 6)], version: version(1) }, NOW_MS);
    expect(available(bucket, bucket.baseMs)).toEqual({ rpm: 6_000, tpm: -39_999 });
  });

  test('settling moves the base forward even within one millisecond', () => {
    const bucket = bucketWith(Limit.perMinute('rpm', 60));
    settle(bucket, { limits: [Limit.perMinute('rpm', 61)], version: version(1) }, NOW_MS);
    settle(bucket, { limits: [Limit.perMinute('rpm', 62)], version: version(2) }, NOW_MS - 5_000);
    expect(bucket.baseMs).toBe(NOW_MS + 2);
  });

  test('added limits start full, and the balance of removed ones is dropped', () => {
    const bucket = bucketWith(Limit.perMinute('rpm', 60));
    spend(bucket, [{ name: 'rpm', milli: 60_000 }], NOW_MS);
    settle(bucket, { limits: [Limit.perMinute('tpm', 10)], version: version(1) }, NOW_MS);
    expect(available(bucket, NOW_MS)).toEqual({ tpm: 10_000 });
    settle(bucket, { limits: [Limit.perMinute('rpm', 60)], version: version(2) }, NOW_MS);
    expect(available(bucket, NOW_MS)).toEqual({ rpm: 60_000 });
  });

  test('the counter of a limit that is added again continues', () => {
    const bucket = bucketWith(Limit.perMinute('rpm', 60));
    spend(bucket, [{ name: 'rpm', milli: 7_000 }], NOW_MS);
    settle(bucket, { limits: [Limit.perMinute('tpm', 10)], version: version(1) }, NOW_MS);
    settle(bucket, { limits: [Limit.perMinute('rpm', 5)], version: version(2) }, NOW_MS);
    spend(bucket, [{ name: 'rpm', milli: 2_000 }], NOW_MS);
    expect(consumed(bucket, 'rpm')).toBe(9_000);
  });

  test('a limit that changed its kind gets a new counter, because tokens are not slots', () => {
    const bucket = bucketWith(Limit.perMinute('x', 60));
    spend(bucket, [{ name: 'x', milli: 7_000 }], NOW_MS);
    settle(bucket, { limits: [Limit.concurrent('x', 4)], version: version(1) }, NOW_MS);
    spend(bucket, [{ name: 'x', milli: 3_000 }], NOW_MS, ['lease', holding('x', 3_000)]);
    settle(bucket, { limits: [Limit.perMinute('x', 60)], version: version(2) }, NOW_MS);
    expect([available(bucket, NOW_MS), consumed(bucket, 'x')]).toEqual([{ x: 60_000 }, 7_000]);
  });

  test('older rules change nothing, and equal rules of a newer version only change the version', () => {
    const bucket = bucketWith(Limit.perMinute('rpm', 60));
    settle(bucket, { limits: [Limit.perMinute('rpm', 5)], version: version(3) }, NOW_MS);
    const before = structuredClone(bucket);
    expect(settle(bucket, { limits: [Limit.perMinute('rpm', 60)], version: version(2) }, NOW_MS + 50)).toBe(false);
    expect(structuredClone(bucket)).toEqual(before);
    expect(settle(bucket, { limits: [Limit.perMinute('rpm', 5)], version: version(9) }, NOW_MS + 50)).toBe(true);
    expect(structuredClone(bucket)).toEqual({ ...before, version: version(9) });
  });

  test('limits that do not change keep their tokens, now and at any later time', () => {
    const rate = fc.record({
      capacity: fc.integer({ min: 1, max: 50 }),
      refillAmount: fc.integer({ min: 1, max: 50 }),
      refillPeriodMs: fc.constantFrom(7, 977, 60_000, 86_400_000),
    });
    fc.assert(
      fc.property(rate, fc.nat({ max: 50 }), fc.array(fc.nat({ max: 5_000 })), (rule, ask, pauses) => {
        const stays = Limit.custom('stays', rule);
        const bucket = bucketWith(stays, Limit.perMinute('other', 1));
        move(bucket, 'rate', [{ name: 'stays', milli: ask * 1_000 }], NOW_MS);
        const untouched = structuredClone(bucket.limits[0]!.tokensMilli);
        let nowMs = NOW_MS;
        for (const [at, pauseMs] of pauses.entries()) {
          nowMs += pauseMs;
          settle(bucket, { limits: [stays, Limit.perMinute('other', at + 2)], version: version(at + 1) }, nowMs);
        }
        for (const atMs of [bucket.baseMs, bucket.baseMs + 1, bucket.baseMs + 60_000]) {
          expect(available(bucket, atMs)['stays']).toBe(effectiveTokens(stays, untouched, credit(stays, NOW_MS, atMs)));
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('slots', () => {
  type Step =
    | { readonly does: 'take'; readonly name: string; readonly milli: number; readonly lifeMs: number }
    | { readonly does: 'release'; readonly lease: number }
    | { readonly does: 'reclaim' }
    | { readonly does: 'move'; readonly name: string; readonly milli: number }
    | { readonly does: 'settle'; readonly limits: readonly Limit[] };

  const name = fc.constantFrom('a', 'b', 'c');
  const milli = fc.integer({ min: 1, max: 4 }).map((n) => n * 1_000);
  const limits = fc.uniqueArray(
    fc
      .tuple(name, fc.nat({ max: 6 }), fc.boolean())
      .map(([named, n, isRate]): Limit => (isRate ? Limit.perSecond(named, n) : Limit.concurrent(named, n))),
    { selector: (limit) => limit.name },
  );
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ does: fc.constant('take' as const), name, milli, lifeMs: fc.nat({ max: 900 }) }),
    },
    { weight: 3, arbitrary: fc.record({ does: fc.constant('release' as const), lease: fc.nat({ max: 20 }) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant('settle' as const), limits }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant('move' as const), name, milli }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant('reclaim' as const) }) },
  );

  function expectHeld({ limits: accounts, holders }: Bucket): void {
    for (const { limit, tokensMilli } of accounts.filter((account) => account.limit.kind === 'concurrent')) {
      const held = [...holders.values()].flatMap(({ slots }) => slots).filter((slot) => slot.name === limit.name);
      const heldMilli = held.reduce((sum, slot) => sum + Number(slot.milli), 0);
      expect([limit.name, limit.capacityMilli - Number(tokensMilli)]).toEqual([limit.name, heldMilli]);
    }
  }

  test('slots lack what their holders hold, however limits are raised, cut, added, removed or changed in kind', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat({ max: 300 }), (steps, paceMs) => {
        const bucket = bucketWith(Limit.concurrent('a', 4), Limit.concurrent('b', 2), Limit.perSecond('c', 5));
        for (const [at, does] of steps.entries()) {
          const nowMs = NOW_MS + at * paceMs;
          if (does.does === 'take') {
            const [verdict] = decide(bucket, [does], nowMs);
            if (verdict?.waitMs !== 0) continue;
            const isSlot = verdict.limit.kind === 'concurrent';
            const holder = holding(does.name, does.milli, nowMs + does.lifeMs);
            spend(bucket, [does], nowMs, isSlot ? [`lease-${at}`, holder] : undefined);
          } else if (does.does === 'release') release(bucket, `lease-${does.lease}`, nowMs);
          else if (does.does === 'reclaim') reclaimExpired(bucket, nowMs);
          else if (does.does === 'move') move(bucket, 'rate', [does], nowMs);
          else settle(bucket, { limits: does.limits, version: version(at + 1) }, nowMs);
          expectHeld(bucket);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test('slots that are cut below what is held go negative, and come back as holders release', () => {
    const bucket = bucketWith(Limit.concurrent('slots', 4));
    for (const id of ['1', '2', '3']) {
      spend(bucket, [{ name: 'slots', milli: 1_000 }], NOW_MS, [id, holding('slots', 1_000)]);
    }
    settle(bucket, { limits: [Limit.concurrent('slots', 1)], version: version(1) }, NOW_MS);
    expect(available(bucket, NOW_MS)).toEqual({ slots: -2_000 });
    for (const id of ['1', '2', '3', '3']) release(bucket, id, NOW_MS);
    expect(available(bucket, NOW_MS)).toEqual({ slots: 1_000 });
  });

  test('the slots of an expired holder come back once, with the rates that it carries', () => {
    const bucket = bucketWith(Limit.concurrent('slots', 2), Limit.perDay('rpd', 10));
    const rates = [{ name: 'rpd', milli: 4_000 }];
    spend(bucket, [{ name: 'slots', milli: 2_000 }, ...rates], NOW_MS, [
      'id',
      { ...holding('slots', 2_000, NOW_MS + 9), rates },
    ]);
    reclaimExpired(bucket, NOW_MS + 8);
    expect(available(bucket, NOW_MS)).toEqual({ slots: 0, rpd: 6_000 });
    reclaimExpired(bucket, NOW_MS + 9);
    reclaimExpired(bucket, NOW_MS + 10);
    expect([available(bucket, NOW_MS), bucket.expired]).toEqual([{ slots: 2_000, rpd: 10_000 }, 1]);
  });
});

test('a bucket is idle once it is full and nothing is held', () => {
  const bucket = bucketWith(Limit.perSecond('rps', 10), Limit.concurrent('slots', 1));
  expect(isIdle(bucket, NOW_MS)).toBe(true);
  spend(bucket, [{ name: 'rps', milli: 10_000 }], NOW_MS);
  expect([isIdle(bucket, NOW_MS + 999), isIdle(bucket, NOW_MS + 1_000)]).toEqual([false, true]);
  spend(bucket, [{ name: 'slots', milli: 0 }], NOW_MS, ['id', holding('slots', 0)]);
  expect(isIdle(bucket, NOW_MS + HOUR_MS)).toBe(false);
});

test('a bucket of an unlimited limit is idle whatever was taken, and one of another limit that is short is not', () => {
  for (const [limits, idle] of [
    [[Limit.unlimited('tpm')], true],
    [[Limit.unlimited('tpm'), Limit.perDay('rpd', 5)], false],
  ] as const) {
    const bucket = createBucket(limits, { sequence: 0, openedAtMs: 0 }, NOW_MS);
    take(
      bucket,
      decide(
        bucket,
        limits.map(({ name }) => ({ name, milli: 1_000 })),
        NOW_MS,
      ),
    );
    expect(isIdle(bucket, NOW_MS)).toBe(idle);
  }
});
