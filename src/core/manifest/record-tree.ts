import { joinPath, Problems } from './problems.js';
import { measureDepths } from './tree.js';
import { MAX_CHAIN } from '../units.js';

/** The parent of each entity, by id. */
export type Parents = ReadonlyMap<string, string | null>;

/** The change of the entity tree that a plan makes. */
export interface TreeChange {
  /** The current records: all that the plan changes, their parents, and all descendants of those that may move or be deleted. */
  readonly live: Parents;
  /** Records that are created or changed, with their new parent. */
  readonly written: Parents;
  readonly deleted: ReadonlySet<string>;
}

/** Refuses a tree that a store would refuse. `isNamed`: whether the file names the entity's parent. */
export function checkTree(change: TreeChange, isNamed: (id: string) => boolean): void {
  const problems = new Problems();
  const final = finalParents(change);
  checkParentsExist(problems, change, final, isNamed);
  checkDepths(problems, change, final);
  problems.throwIfAny();
}

function finalParents({ live, written, deleted }: TreeChange): Parents {
  const kept = [...live].filter(([id]) => !deleted.has(id));
  return new Map([...kept, ...written]);
}

function checkParentsExist(
  problems: Problems,
  { written, deleted }: TreeChange,
  final: Parents,
  isNamed: (id: string) => boolean,
): void {
  for (const [id, parent] of final) {
    if (parent === null || final.has(parent)) continue;
    const path = pathOfParent(id);
    if (!deleted.has(parent)) {
      if (written.has(id)) problems.add(path, 'an entity of the file, or one that exists', parent);
    } else if (isNamed(id)) problems.add(path, 'an entity that the file keeps', parent);
    else {
      const expected = 'in the file, or without children that stay';
      problems.add(joinPath('entities', parent), expected, `the child ${id}`);
    }
  }
}

function checkDepths(problems: Problems, { live, written }: TreeChange, final: Parents): void {
  const parentOf = (id: string): string | null => final.get(id) ?? null;
  const moved = (id: string): boolean => written.has(id) && written.get(id) !== live.get(id);
  const blamed = new Set<string>();
  for (const [id, depth] of measureDepths(final.keys(), parentOf)) {
    const culprit = depth > MAX_CHAIN ? firstOnWay(id, parentOf, moved) : undefined;
    if (culprit === undefined || blamed.has(culprit)) continue;
    blamed.add(culprit);
    const isCircle = depth === Number.POSITIVE_INFINITY;
    const expected = isCircle ? 'above the entity, not below it' : `at the end of at most ${MAX_CHAIN} levels`;
    problems.add(pathOfParent(culprit), expected, isCircle ? parentOf(culprit) : `${depth} levels, down to ${id}`);
  }
}

function firstOnWay(
  id: string,
  parentOf: (id: string) => string | null,
  is: (id: string) => boolean,
): string | undefined {
  const seen = new Set<string>();
  for (let next: string | null = id; next !== null && !seen.has(next); next = parentOf(next)) {
    if (is(next)) return next;
    seen.add(next);
  }
  return undefined;
}

function pathOfParent(id: string): string {
  return joinPath(joinPath('entities', id), 'parent');
}
