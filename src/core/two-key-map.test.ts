import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TwoKeyMap } from './two-key-map.js';

const RUNS = { numRuns: 2_000 };

type Step =
  | { readonly does: 'set'; readonly first: string; readonly second: string; readonly value: number }
  | { readonly does: 'delete' | 'get'; readonly first: string; readonly second: string }
  | { readonly does: 'clear' };

/** Few keys, so that they repeat often; some would be ambiguous if they were joined. */
const key = fc.constantFrom('', 'a', 'b', 'a#', '#a', 'constructor', '__proto__');
const keys = { first: key, second: key };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ does: fc.constant('set' as const), ...keys, value: fc.nat() }) },
  { weight: 6, arbitrary: fc.record({ does: fc.constantFrom('delete' as const, 'get' as const), ...keys }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('clear' as const) }) },
);
const steps = fc.array(step, { maxLength: 60 });

function pairOf(first: string, second: string): string {
  return JSON.stringify([first, second]);
}

/** Applies each operation to the map and to a Map keyed by the pair. */
class Both {
  readonly map = new TwoKeyMap<number>();
  readonly model = new Map<string, number>();

  apply(op: Step): void {
    if (op.does === 'clear') {
      this.map.clear();
      this.model.clear();
      return;
    }
    const { first, second } = op;
    if (op.does === 'set') {
      this.map.set(first, second, op.value);
      this.model.set(pairOf(first, second), op.value);
    } else if (op.does === 'delete') {
      this.map.delete(first, second);
      this.model.delete(pairOf(first, second));
    }
    expect(this.map.get(first, second)).toBe(this.model.get(pairOf(first, second)));
    expect(this.map.size).toBe(this.model.size);
  }
}

test('a map by two keys behaves like a Map keyed by the pair', () => {
  fc.assert(
    fc.property(steps, (ops) => {
      const both = new Both();
      for (const op of ops) both.apply(op);
      const entries = [...both.map.entries()].map(([first, second, value]) => [pairOf(first, second), value] as const);
      expect(new Map(entries)).toEqual(both.model);
      expect(entries).toHaveLength(both.model.size);
    }),
    RUNS,
  );
});

test('a map by two keys keeps the order of insertion within a second key', () => {
  fc.assert(
    fc.property(steps, (ops) => {
      const both = new Both();
      for (const op of ops) both.apply(op);
      for (const second of ['', 'a', 'b']) {
        const found = [...both.map.entries()].filter((entry) => entry[1] === second).map(([first]) => first);
        const pairs = [...both.model.keys()].map((pair) => JSON.parse(pair) as [string, string]);
        expect(found).toEqual(pairs.filter((pair) => pair[1] === second).map(([first]) => first));
      }
    }),
    RUNS,
  );
});

test('iteration over a map that changes visits each remaining entry once and no deleted entry', () => {
  fc.assert(
    fc.property(steps, fc.array(fc.array(step, { maxLength: 3 }), { maxLength: 20 }), (before, during) => {
      const both = new Both();
      for (const op of before) both.apply(op);
      const staying = new Set(both.model.keys());
      const met: string[] = [];
      let turn = 0;
      for (const [first, second, value] of both.map.entries()) {
        const pair = pairOf(first, second);
        expect(both.model.get(pair)).toBe(value);
        met.push(pair);
        for (const op of during[turn++] ?? []) {
          both.apply(op);
          if (op.does === 'clear') staying.clear();
          else if (op.does === 'delete') staying.delete(pairOf(op.first, op.second));
        }
      }
      for (const pair of staying) expect(met.filter((seen) => seen === pair)).toHaveLength(1);
    }),
    RUNS,
  );
});

test('a map can be cleared during an iteration', () => {
  fc.assert(
    fc.property(steps, (ops) => {
      const both = new Both();
      for (const op of ops) both.apply(op);
      const { size } = both.map;
      let met = 0;
      for (const [first, second] of both.map.entries()) {
        both.apply({ does: 'delete', first, second });
        met += 1;
      }
      expect([met, both.map.size, [...both.map.entries()]]).toEqual([size, 0, []]);
    }),
    RUNS,
  );
});

test('deleteOldest deletes one entry of a map that is not empty, the one that has been longest in a map of one second key', () => {
  fc.assert(
    fc.property(steps, (ops) => {
      const map = new TwoKeyMap<number>();
      const order: string[] = [];
      for (const op of ops) {
        if (op.does === 'clear') {
          map.deleteOldest();
          order.shift();
        } else if (op.does === 'set') {
          map.delete(op.first, 'gpt-4');
          map.set(op.first, 'gpt-4', op.value);
          if (order.includes(op.first)) order.splice(order.indexOf(op.first), 1);
          order.push(op.first);
        }
        expect([...map.entries()].map(([first]) => first)).toEqual(order);
      }
    }),
    RUNS,
  );
});
