import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LevelAsk } from '../../backend.js';
import type { Amount } from '../../core/bucket/decide.js';
import { changesBy } from '../../core/bucket/holder-rules.js';
import { Limit } from '../../core/limit.js';
import type { Bucket } from './bucket.js';
import { adjust, consume } from './consume.js';
import { MemorySpace } from './memory-space.js';

const NOW_MS = 1_800_001_800_000;

const bucketOf = (space: MemorySpace): Bucket | undefined => space.readBucket('user', 'gpt-4');

function levelOf(limits: readonly Limit[], sequence: number, asks: readonly Amount[]): LevelAsk {
  return { entityId: 'user', resource: 'gpt-4', limits, version: { sequence, openedAtMs: 0 }, asks, holder: null };
}

const isSlots = (limits: readonly Limit[], name: string): boolean =>
  limits.find((limit) => limit.name === name)?.kind === 'concurrent';

describe('clients with different config versions', () => {
  const name = fc.constantFrom('a', 'b');
  const config = fc
    .uniqueArray(fc.tuple(name, fc.integer({ min: 1, max: 5 }), fc.boolean()), { minLength: 1, selector: ([n]) => n })
    .map((list) =>
      list.map(([named, n, isRate]): Limit => (isRate ? Limit.perSecond(named, n) : Limit.concurrent(named, n))),
    );
  const step = fc.record({
    /** How many versions the client is behind. */
    behind: fc.nat({ max: 2 }),
    asks: fc.uniqueArray(fc.record({ name, milli: fc.integer({ min: 0, max: 3 }).map((n) => n * 1_000) }), {
      minLength: 1,
      selector: (ask) => ask.name,
    }),
    ends: fc.constantFrom('held', 'committed', 'rolled back'),
    pauseMs: fc.nat({ max: 700 }),
  });

  function heldOf(bucket: Bucket, of: string): number {
    const slots = [...bucket.holders.values()].flatMap((holder) => holder.slots).filter((slot) => slot.name === of);
    return slots.reduce((sum, slot) => sum + Number(slot.milli), 0);
  }

  test('clients with different config versions neither lose nor create slots', () => {
    fc.assert(
      fc.property(
        fc.array(config, { minLength: 1, maxLength: 6 }),
        fc.array(step, { maxLength: 40 }),
        (configs, steps) => {
          const space = new MemorySpace();
          let nowMs = NOW_MS;
          for (const [at, { behind, asks, ends, pauseMs }] of steps.entries()) {
            nowMs += pauseMs;
            // A new version every few steps, until there are no more.
            const sequence = Math.max(0, Math.min(configs.length - 1, Math.floor(at / 4)) - behind);
            const known = configs[sequence]!;
            const slots = asks.filter((ask) => ask.milli > 0 && isSlots(known, ask.name));
            const asked = levelOf(
              known,
              sequence,
              asks.filter((ask) => known.some((limit) => limit.name === ask.name)),
            );
            const holder = { expiresAtMs: nowMs + 500, acquiredAtMs: nowMs, slots, rates: null, caller: null };
            const level = slots.length > 0 ? { ...asked, holder } : asked;
            const leaseId = `lease-${at}`;
            const outcome = consume(space, { leaseId: slots.length > 0 ? leaseId : null, levels: [level] }, nowMs);
            if (outcome.kind === 'granted' && ends !== 'held') {
              const rates = level.asks.filter((ask) => !isSlots(known, ask.name));
              const deltas = ends === 'rolled back' ? rates.map((ask) => ({ ...ask, milli: -Number(ask.milli) })) : [];
              const end = slots.length > 0 ? ('release' as const) : ('none' as const);
              adjust(space, { leaseId, levels: [{ ...level, amounts: changesBy(deltas), holder: end }] }, nowMs);
            }
            const bucket = bucketOf(space);
            for (const { limit, tokensMilli } of bucket?.limits ?? []) {
              if (limit.kind !== 'concurrent') continue;
              expect(limit.capacityMilli - Number(tokensMilli)).toBe(heldOf(bucket!, limit.name));
            }
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('a client with an old config is asked to read it again, and retries soon if the old config cannot decide', () => {
    const space = new MemorySpace();
    const ask = [{ name: 'a', milli: 1_000 }];
    const newer = levelOf([Limit.concurrent('a', 2), Limit.perSecond('b', 2)], 2, [{ name: 'b', milli: 1_000 }]);
    expect(consume(space, { leaseId: null, levels: [newer] }, NOW_MS)).toMatchObject({ kind: 'granted' });
    const older = levelOf([Limit.perSecond('a', 9), Limit.perSecond('b', 9)], 1, [{ name: 'b', milli: 1_000 }]);
    expect(consume(space, { leaseId: null, levels: [older] }, NOW_MS)).toMatchObject({
      kind: 'granted',
      levels: [{ configIsOlder: true, verdicts: [{ limit: { name: 'b', capacity: 2 } }] }],
    });
    expect(consume(space, { leaseId: null, levels: [{ ...older, asks: ask }] }, NOW_MS)).toMatchObject({
      kind: 'denied',
      reason: 'contended',
      levels: [{ configIsOlder: true }],
    });
  });

  test('clients with different config versions in turns get 6 grants in a minute from a limit of 3 a minute', () => {
    const space = new MemorySpace();
    const rpm = Limit.perMinute('rpm', 3);
    const old = [rpm];
    const recent = [rpm, Limit.perMinute('tpm', 1_000)];
    let granted = 0;
    for (let turn = 0; turn <= 600; turn++) {
      const isOld = turn % 2 === 1;
      const level = levelOf(isOld ? old : recent, isOld ? 1 : 2, [{ name: 'rpm', milli: 1_000 }]);
      if (consume(space, { leaseId: null, levels: [level] }, NOW_MS + turn * 100).kind === 'granted') granted += 1;
    }
    expect([granted, bucketOf(space)?.version.sequence, bucketOf(space)?.baseMs]).toEqual([6, 2, NOW_MS]);
  });
});
