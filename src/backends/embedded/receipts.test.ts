import { expect, test } from 'vitest';
import { Receipts } from './receipts.js';

const receipt = (id: string) => ({ entityId: 'user-1', resource: 'gpt-4', id, content: `charge ${id}` });

test('a receipt is found until it ends', () => {
  const receipts = new Receipts();
  receipts.write(receipt('a'), 5_000, 0);
  expect(receipts.read(receipt('a'), 4_999)).toBe('charge a');
  expect(receipts.read(receipt('a'), 5_000)).toBeUndefined();
  expect(receipts.read(receipt('b'), 0)).toBeUndefined();
});

test('a write removes the receipts that have ended', () => {
  const receipts = new Receipts();
  for (let at = 0; at < 10; at++) receipts.write(receipt(String(at)), at + 1_000, at);
  receipts.write(receipt('last'), 9_000, 1_006);
  expect(receipts.size).toBe(4);
  expect(receipts.read(receipt('7'), 1_006)).toBe('charge 7');
});

test('beyond the bound the oldest receipt is forgotten, and a receipt that is written again is the newest', () => {
  const receipts = new Receipts(3);
  for (const id of ['a', 'b', 'c', 'a', 'd']) receipts.write(receipt(id), 5_000, 0);
  expect(['a', 'b', 'c', 'd'].map((id) => receipts.read(receipt(id), 0) !== undefined)).toEqual([
    true,
    false,
    true,
    true,
  ]);
});
