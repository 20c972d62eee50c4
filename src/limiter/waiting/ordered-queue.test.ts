import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Ordered, OrderedQueue } from './ordered-queue.js';

test('a queue returns its items by their order, after any insertions and deletions', () => {
  const step = fc.record({ order: fc.integer({ min: 0, max: 30 }), joins: fc.boolean() });
  const property = fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
    const items = new Map<number, Ordered>();
    const queue = new OrderedQueue<Ordered>();
    const expected = new Set<number>();
    for (const { order, joins } of steps) {
      const item = items.get(order) ?? { order };
      items.set(order, item);
      if (joins) queue.add(item);
      else expect(queue.delete(item)).toBe(expected.has(order));
      if (joins) expected.add(order);
      else expected.delete(order);
      const listed: number[] = [];
      for (let at = queue.first; at !== null; at = queue.after(at)) listed.push(at.order);
      expect(listed).toEqual([...expected].toSorted((a, b) => a - b));
      expect(queue.size).toBe(expected.size);
    }
  });
  fc.assert(property);
});
