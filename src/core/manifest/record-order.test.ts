import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ValidationError } from '../errors.js';
import { orderRecords } from './record-order.js';
import { checkTree, type Parents, type TreeChange } from './record-tree.js';
import { MAX_CHAIN } from '../units.js';

type Tree = Map<string, string | null>;

/** The parents above an id; null if they form a cycle. */
function wayUp(tree: Parents, id: string): string[] | null {
  const way: string[] = [];
  for (let next: string | null = id; next !== null; next = tree.get(next) ?? null) {
    if (way.includes(next)) return null;
    way.push(next);
  }
  return way;
}

/** The check that every store makes after each change. */
function isSound(tree: Parents): boolean {
  return [...tree].every(([id, parent]) => {
    const way = wayUp(tree, id);
    return (parent === null || tree.has(parent)) && way !== null && way.length <= MAX_CHAIN;
  });
}

function finalTree({ live, written, deleted }: TreeChange): Tree {
  return new Map([...[...live].filter(([id]) => !deleted.has(id)), ...written]);
}

const NODES = 24;
const node = fc.nat({ max: NODES - 1 }).map((at) => `n${at}`);

/** Any tree that a store can have. Most have chains of the maximum length. */
const liveTree: fc.Arbitrary<Tree> = fc
  .array(fc.tuple(fc.boolean(), fc.nat()), { minLength: NODES, maxLength: NODES })
  .map((draws) => {
    const tree: Tree = new Map();
    for (const [at, [exists, draw]] of draws.entries()) {
      if (!exists && draw % 3 === 0) continue;
      const ids = [...tree.keys()];
      // Mostly the previous node, so that chains are formed.
      const parent =
        draw % 5 === 0 ? null : (ids[draw % 4 === 0 ? draw % Math.max(1, ids.length) : ids.length - 1] ?? null);
      const depth = parent === null ? 0 : (wayUp(tree, parent) ?? []).length;
      tree.set(`n${at}`, depth < MAX_CHAIN ? parent : null);
    }
    return tree;
  });

const treeChange: fc.Arbitrary<TreeChange> = fc
  .tuple(
    liveTree,
    fc.array(fc.tuple(node, fc.option(node, { freq: 4 })), { maxLength: 12 }),
    fc.array(node, { maxLength: 6 }),
  )
  .map(([live, moves, gone]) => {
    const written = new Map(moves);
    return { live, written, deleted: new Set(gone.filter((id) => live.has(id) && !written.has(id))) };
  });

/** Another sound tree of the same nodes, so that all nodes move. */
const upheaval: fc.Arbitrary<TreeChange> = fc
  .tuple(liveTree, liveTree, fc.infiniteStream(fc.nat()))
  .map(([live, wanted, draws]) => {
    const names = [...wanted.keys()];
    const shuffled = new Map(names.map((id) => [id, draws.next().value ?? 0]));
    const renamed = names.toSorted((a, b) => (shuffled.get(a) ?? 0) - (shuffled.get(b) ?? 0));
    const nameOf = new Map(names.map((id, at) => [id, renamed[at] ?? id]));
    const written = new Map(
      [...wanted].map(([id, parent]) => [nameOf.get(id) ?? id, parent === null ? null : (nameOf.get(parent) ?? null)]),
    );
    return { live, written, deleted: new Set([...live.keys()].filter((id) => !written.has(id))) };
  });

function isRefused(change: TreeChange): boolean {
  try {
    checkTree(change, () => true);
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(ValidationError);
    return true;
  }
}

/** Makes every change in the given order and expects that a store accepts each. */
function replay(change: TreeChange): void {
  const tree: Tree = new Map(change.live);
  const { first, last } = orderRecords(change);
  const all = [...first, ...last];
  expect(all.toSorted()).toEqual([...change.written.keys(), ...change.deleted].toSorted());
  for (const id of all) {
    const where = `${id} of ${JSON.stringify([...change.live])} to ${JSON.stringify([...change.written])}`;
    if (change.deleted.has(id)) {
      expect([...tree.values()].includes(id), where).toBe(false);
      tree.delete(id);
    } else tree.set(id, change.written.get(id) ?? null);
    expect(isSound(tree), where).toBe(true);
  }
  expect(tree).toEqual(finalTree(change));
}

test('a change is refused if and only if the resulting tree is not sound', () => {
  let refused = 0;
  fc.assert(
    fc.property(treeChange, (change) => {
      const isBad = isRefused(change);
      expect(isBad).toBe(!isSound(finalTree(change)));
      refused += isBad ? 1 : 0;
    }),
    { numRuns: 1_500 },
  );
  expect(refused).toBeGreaterThan(50);
});

test.each([
  ['some nodes move', treeChange],
  ['all nodes move', upheaval],
])('there is an order in which a store accepts every single change: %s', (_, changes) => {
  let replayed = 0;
  fc.assert(
    fc.property(changes, (change) => {
      if (!isSound(finalTree(change))) return;
      replayed += 1;
      replay(change);
    }),
    { numRuns: 1_500 },
  );
  expect(replayed).toBeGreaterThan(100);
});

test('parents are written before their children, and children are deleted before their parents', () => {
  const written = new Map([
    ['c', 'b'],
    ['b', 'a'],
    ['a', null],
  ]);
  const live = new Map([
    ['x', null],
    ['y', 'x'],
    ['z', 'y'],
  ]);
  expect(orderRecords({ live, written, deleted: new Set(['x', 'y', 'z']) })).toEqual({
    first: ['a', 'b', 'c'],
    last: ['z', 'y', 'x'],
  });
});

test('a child that becomes the parent of its parent moves up first', () => {
  const live = new Map([
    ['a', null],
    ['b', 'a'],
  ]);
  const written = new Map([
    ['a', 'b'],
    ['b', null],
  ]);
  expect(orderRecords({ live, written, deleted: new Set() }).first).toEqual(['b', 'a']);
});

test('a move that would make a chain too long waits until other records have moved or were deleted', () => {
  const chain = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];
  const live: Tree = new Map(chain.map((id, at) => [id, chain[at - 1] ?? null]));
  const lengthened = {
    live,
    written: new Map([
      ['top', null],
      ['c1', 'top'],
      ['c8', 'top'],
    ]),
    deleted: new Set<string>(),
  };
  expect(orderRecords(lengthened).first).toEqual(['top', 'c8', 'c1']);
  const cut = {
    live,
    written: new Map([
      ['top', null],
      ['c1', 'top'],
    ]),
    deleted: new Set(['c8']),
  };
  expect(orderRecords(cut)).toEqual({ first: ['top', 'c8', 'c1'], last: [] });
});

test('200,000 records that are deleted can be ordered', () => {
  const ids = Array.from({ length: 200_000 }, (_, at) => `n${at}`);
  const live = new Map(ids.map((id) => [id, null] as const));
  expect(orderRecords({ live, written: new Map(), deleted: new Set(ids) }).last.length).toBe(200_000);
});
