import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type InLine, LineMembers } from './line-members.js';

function waitersOf(count: number): readonly InLine[] {
  return Array.from({ length: count }, (_, order) => ({ order, tokens: order + 1, sinceMs: 0, ask: () => {} }));
}

const sum = (waiters: Iterable<InLine>): number => [...waiters].reduce((total, { tokens }) => total + tokens, 0);

const first = (waiters: Iterable<InLine>): InLine | null =>
  [...waiters].toSorted((one, other) => one.order - other.order)[0] ?? null;

test('the tokens, the size and the head of a line are those of its waiters, whatever joins, asks and leaves', () => {
  const step = fc.record({ how: fc.constantFrom('queue', 'send', 'remove'), at: fc.nat(5) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const waiters = waitersOf(6);
      const members = new LineMembers();
      const queued = new Set<InLine>();
      const asking = new Set<InLine>();
      for (const { how, at } of steps) {
        const waiter = waiters[at]!;
        queued.delete(waiter);
        asking.delete(waiter);
        members.remove(waiter);
        if (how === 'queue') members.queue(waiter);
        if (how === 'queue') queued.add(waiter);
        if (how === 'send') members.send(waiter);
        if (how === 'send') asking.add(waiter);
        // Waves are sent in the order of the line, so the first ask in flight is the earliest.
        const head = first([...(asking.size > 0 ? [[...asking][0]!] : []), ...queued]);
        expect(members).toMatchObject({
          size: queued.size + asking.size,
          isAsking: asking.size > 0,
          queuedTokens: sum(queued),
          askingTokens: sum(asking),
        });
        expect(members.firstQueued).toBe(first(queued));
        expect(members.head).toBe(head);
      }
    }),
  );
});

test('the tokens of an ask in flight are those that it was sent with', () => {
  const waiter = { order: 1, tokens: 5, sinceMs: 0, ask: () => {} };
  const members = new LineMembers();
  members.queue(waiter);
  members.send(waiter);
  waiter.tokens = 7;
  expect(members.askingTokens).toBe(5);
  members.remove(waiter);
  expect(members).toMatchObject({ askingTokens: 0, queuedTokens: 0, size: 0 });
});
