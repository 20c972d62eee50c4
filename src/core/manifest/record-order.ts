import type { Parents, TreeChange } from './record-tree.js';
import { measureDepths } from './tree.js';
import { MAX_CHAIN } from '../units.js';

/** The ids of the records to write and to delete, in two groups: before all other changes, and after them. */
export interface RecordOrder {
  /** Records to write, and records that must be deleted early because a chain would otherwise be too long. */
  readonly first: readonly string[];
  /** Records to delete: children before their parents. */
  readonly last: readonly string[];
}

/**
 * An order in which a store accepts every change. A store refuses a missing parent, a cycle, and a chain that is too
 * long, even if a later change would repair it. Parents come first. A move that is not possible yet waits until others
 * have moved. At least one waiting record can always move: those that move up make room for the others.
 */
export function orderRecords(change: TreeChange): RecordOrder {
  const forest = new Forest(change.live);
  const first: string[] = [];
  const toDelete = new Set(change.deleted);
  let waiting = topDown(change.written);
  while (waiting.length > 0) {
    const still = waiting.filter((id) => {
      const moved = forest.move(id, change.written.get(id) ?? null);
      if (moved) first.push(id);
      return !moved;
    });
    if (still.length === waiting.length) {
      const gone = deleteLeaves(forest, toDelete);
      for (const id of gone) first.push(id);
      // Unreachable: for a tree that was checked there is always an order.
      if (gone.length === 0) return { first: [...first, ...still], last: [...toDelete] };
    }
    waiting = still;
  }
  const last: string[] = [];
  for (let gone = deleteLeaves(forest, toDelete); gone.length > 0; gone = deleteLeaves(forest, toDelete)) {
    for (const id of gone) last.push(id);
  }
  return { first, last: [...last, ...toDelete] };
}

function topDown(written: Parents): readonly string[] {
  const depths = measureDepths(written.keys(), (id) => written.get(id) ?? null);
  return [...written.keys()].toSorted((a, b) => (depths.get(a) ?? 0) - (depths.get(b) ?? 0));
}

function deleteLeaves(forest: Forest, toDelete: Set<string>): readonly string[] {
  const leaves = [...toDelete].filter((id) => forest.isLeaf(id));
  for (const id of leaves) {
    forest.delete(id);
    toDelete.delete(id);
  }
  return leaves;
}

/** The tree between two changes. */
class Forest {
  readonly #parents = new Map<string, string | null>();
  readonly #children = new Map<string, Set<string>>();

  constructor(parents: Parents) {
    for (const [id, parent] of parents) this.#link(id, parent);
  }

  isLeaf(id: string): boolean {
    return (this.#children.get(id)?.size ?? 0) === 0;
  }

  delete(id: string): void {
    this.#unlink(id);
    this.#parents.delete(id);
  }

  /** False: a store would refuse the move now. */
  move(id: string, parent: string | null): boolean {
    const isNew = !this.#parents.has(id);
    if (!isNew && this.#parents.get(id) === parent) return true;
    if (parent !== null && !this.#fits(id, parent)) return false;
    this.#unlink(id);
    this.#link(id, parent);
    return true;
  }

  #fits(id: string, parent: string): boolean {
    let levels = 1;
    for (let next: string | null = parent; next !== null; next = this.#parents.get(next) ?? null) {
      if (next === id || !this.#parents.has(next)) return false;
      levels += 1;
      if (levels > MAX_CHAIN) return false;
    }
    return levels + this.#heightBelow(id) <= MAX_CHAIN;
  }

  #heightBelow(id: string): number {
    let height = 0;
    for (let level = [id]; ; height++) {
      level = level.flatMap((parent) => [...(this.#children.get(parent) ?? [])]);
      if (level.length === 0 || height > MAX_CHAIN) return height;
    }
  }

  #link(id: string, parent: string | null): void {
    this.#parents.set(id, parent);
    if (parent === null) return;
    const children = this.#children.get(parent) ?? new Set();
    this.#children.set(parent, children.add(id));
  }

  #unlink(id: string): void {
    const parent = this.#parents.get(id) ?? null;
    if (parent !== null) this.#children.get(parent)?.delete(id);
  }
}
