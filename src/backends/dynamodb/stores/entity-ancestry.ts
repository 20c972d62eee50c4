import { missingParent, refuseBadParent } from '../../../core/config/parents.js';
import { MAX_CHAIN } from '../../../core/units.js';
import type { Deadline } from '../../../machine-time.js';
import { ownOrNothing, requireOwn } from '../table/foreign-record.js';
import { buildEntityKey, index } from '../table/keys.js';
import { decodeChildren, decodeEntity } from '../table/records.js';
import { readItems } from '../client/batches.js';
import { readItem, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { behind, readRows } from './rows.js';

/**
 * Reads the chain from a parent to the top, as id to record. Throws if `parentId` may not be a parent of the entity.
 */
export async function readParents(
  table: Table,
  ns: string,
  id: string,
  parentId: string,
  levelsBelow: number,
  deadline: Deadline,
): Promise<ReadonlyMap<string, Item>> {
  const parents = new Map<string, Item>();
  for (let next: string | null = parentId; next !== null;) {
    refuseBadParent([id, ...parents.keys()], next, levelsBelow);
    const item: Item | undefined = requireOwn(table, await readItem(table, buildEntityKey(ns, next), deadline));
    if (item === undefined) throw missingParent(next);
    parents.set(next, item);
    next = decodeEntity(item).parentId;
  }
  return parents;
}

/**
 * The number of levels of children below an entity. It uses an index, so a child that was just created may be missed.
 * Then the chain is longer than allowed, and acquires of the lowest level fail with that reason.
 */
export async function readHeightBelow(table: Table, ns: string, entity: Item, deadline: Deadline): Promise<number> {
  let height = 0;
  for (let level = [entity]; height < MAX_CHAIN; height++) {
    const below: Item[] = [];
    for (const parent of level.filter((item) => decodeChildren(item) > 0)) {
      for (const child of await readChildItems(table, ns, decodeEntity(parent).id, deadline)) below.push(child);
    }
    if (below.length === 0) return height;
    level = below;
  }
  return height;
}

const EXPECTED_CHILDREN = 100;

async function readChildItems(table: Table, ns: string, parentId: string, deadline: Deadline): Promise<Item[]> {
  const keys = [];
  for await (const row of readChildRows(table, ns, parentId, null, EXPECTED_CHILDREN, deadline)) {
    keys.push(buildEntityKey(ns, childOf(row)));
  }
  return (await readItems(table, keys, deadline)).map(ownOrNothing).filter((item) => item !== undefined);
}

/** Rows of the index, in the order of the children's ids. */
export function readChildRows(
  table: Table,
  ns: string,
  parentId: string,
  after: string | null,
  expected: number,
  deadline: Deadline,
): AsyncGenerator<Item> {
  const range = {
    index: 'GSI1',
    partitions: [index.children(ns, parentId)],
    ...behind(index.child(''), after),
  } as const;
  return readRows(table, range, expected, () => deadline);
}

export function childOf(row: Item): string {
  return (row['GSI1SK']?.S ?? '').slice(index.child('').length);
}
