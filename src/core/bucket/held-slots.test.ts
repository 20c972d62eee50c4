import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Amount, Holder } from './decide.js';
import { heldSlots, startingTokens } from './held-slots.js';
import { shareOf } from './shard.js';
import { Limit } from '../limit.js';

const NOW_MS = 1_800_000_000_000;

function holdersOf(lists: readonly (readonly Amount[])[]): ReadonlyMap<string, Holder> {
  const holder = { expiresAtMs: NOW_MS + 1, acquiredAtMs: NOW_MS, rates: null, caller: null };
  return new Map(lists.map((slots, at) => [`lease-${at}`, { ...holder, slots }]));
}

/** Up to 1e15 in each of several holders, so that sums exceed 2^53. */
const milli = fc.oneof(fc.nat({ max: 9_000 }), fc.integer({ min: 0, max: 1e15 }));
const slots = fc.uniqueArray(fc.record({ name: fc.constantFrom('jobs', 'gpus', 'constructor'), milli }), {
  selector: ({ name }) => name,
});

test('the held slots of a limit are the exact sum of what the holders have of it, and of no other limit', () => {
  fc.assert(
    fc.property(fc.array(slots, { maxLength: 20 }), (lists) => {
      const jobs = lists.flat().filter(({ name }) => name === 'jobs');
      const expected = jobs.reduce((sum, amount) => sum + BigInt(amount.milli), 0n);
      expect(BigInt(heldSlots(holdersOf(lists), 'jobs'))).toBe(expected);
    }),
  );
});

test('slots that start and the slots that are held are together the capacity, even if more are held than exist', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1e9 }), fc.array(slots, { maxLength: 20 }), (capacity, lists) => {
      const held = heldSlots(holdersOf(lists), 'jobs');
      const started = startingTokens(Limit.concurrent('jobs', capacity), held);
      expect(BigInt(started) + BigInt(held)).toBe(BigInt(capacity) * 1_000n);
    }),
  );
});

test('the shares of slots start together with what the whole limit starts with', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1e6 }), fc.integer({ min: 1, max: 64 }), milli, (capacity, count, held) => {
      const whole = Limit.concurrent('jobs', capacity);
      const shares = Array.from({ length: count }, (_, shard) => shareOf(whole, shard, count));
      const sum = shares.reduce((total, share, shard) => {
        return total + BigInt(startingTokens(share, shard === 0 ? held : 0));
      }, 0n);
      expect(sum).toBe(BigInt(startingTokens(whole, held)));
    }),
  );
});

test('a rate starts full and an unlimited limit starts with no balance, whatever holders have of their names', () => {
  fc.assert(
    fc.property(milli, (held) => {
      expect(startingTokens(Limit.perMinute('jobs', 60, { burst: 90 }), held)).toBe(90_000);
      expect(startingTokens(Limit.unlimited('jobs'), held)).toBe(0);
    }),
  );
});
