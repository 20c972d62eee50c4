import { expect } from 'vitest';
import type { EntryResult } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { amountOf } from '../../../../src/core/bucket/decide.js';
import { worthOf } from '../../../oracle/model.js';
import type { Answer, SequentialModel } from '../../models/sequential-model.js';
import { accountIn } from '../shard/shard-truth.js';

/** What each entry was told, without the balances. */
export function kindsOf(answers: readonly (Answer | EntryResult | null)[]): unknown[] {
  return answers.map((answer) => {
    if (answer === null) return null;
    if (answer.kind === 'done') return answer.holderLost ? 'done, holder lost' : 'done';
    if (answer.kind === 'extended') return answer.found ? 'extended' : 'not extended';
    return answer.kind;
  });
}

/** Expects the stored item to equal the model: balances to the millitoken, counters, holders and slots. */
export function expectSame(after: ShardImage, before: ShardImage, model: SequentialModel, nowMs: number): void {
  for (const { limit, rate, tokensMilli, consumedMilli } of after.limits) {
    const worth = worthOf(rate, tokensMilli, after.baseMs, nowMs);
    expect([limit.name, worth]).toEqual([limit.name, model.tokens.get(limit.name)]);
    if (limit.kind === 'concurrent') {
      const held = [...after.holders.values()].reduce(
        (sum, { slots }) => sum + Number(amountOf(slots, limit.name) ?? 0),
        0,
      );
      expect([limit.name, Number(tokensMilli) + held]).toEqual([limit.name, limit.capacityMilli]);
    } else {
      const moved = BigInt(consumedMilli) - BigInt(accountIn(before, limit.name)!.consumedMilli);
      expect([limit.name, moved]).toEqual([limit.name, model.consumed.get(limit.name) ?? 0n]);
    }
  }
  expect(after.acquires - before.acquires).toBe(model.acquires);
  expect(after.expired - before.expired).toBe(model.expired);
  const holders = [...after.holders].map(
    ([id, { expiresAtMs, slots, rates }]) => [id, { expiresAtMs, slots, rates }] as const,
  );
  expect(new Map(holders)).toEqual(
    new Map([...model.holders].map(([id, { expiresAtMs, slots, rates }]) => [id, { expiresAtMs, slots, rates }])),
  );
}
