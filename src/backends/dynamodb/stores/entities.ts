import type { AdminCall, Call, EntityChange, EntityRecord, EntityStore, Page, PageRequest } from '../../../backend.js';
import { EntityExists, EntityNotFound, VersionConflict } from '../../../core/errors.js';
import { changedEntity } from '../../../core/config/changed-entity.js';
import { refuseOtherVersion } from '../../../core/config/parents.js';
import { auditOfPause, newPausedEntity, refusePaused, withPause } from '../../../core/config/paused-records.js';
import { type Pause, type PauseChange, planPause, samePause } from '../../../core/pause.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { ownOrNothing, requireOwn } from '../table/foreign-record.js';
import { buildEntityKey, index, parseEntityKey, SUFFIXES } from '../table/keys.js';
import { CHILDREN, decodeChildren, decodeEntity, encodeEntity, OPTIONAL_ENTITY_ATTRIBUTES } from '../table/records.js';
import { readItems } from '../client/batches.js';
import { readItem, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { ABSENT, type Action, checkAction, deleteAction, putAction, type Seen, updateAction } from './actions.js';
import { type PlannedChange, writeChange } from './change.js';
import { childOf, readChildRows, readHeightBelow, readParents } from './entity-ancestry.js';
import type { NamespaceGate } from '../schema/namespace-gate.js';
import type { VersionGate } from '../schema/version-gate.js';
import type { RecentWrites } from './recent-writes.js';
import { behind, pageOfRecords, readRows } from './rows.js';

/**
 * Records of entities. Each stores the number of its children, which changes in the same transaction as the children.
 * So no entity with children is deleted, although the index of children is eventually consistent.
 */
export function createEntityStore(
  table: Table,
  gate: NamespaceGate,
  versions: Pick<VersionGate, 'require'>,
  ownWrites: RecentWrites,
): EntityStore {
  const change = async <T>(
    call: AdminCall,
    plan: (deadline: Deadline) => Promise<PlannedChange<T>>,
    { pause, bypass }: Pick<EntityChange, 'pause' | 'bypass'> = {},
  ): Promise<T> => {
    await gate.check(call);
    // A client of version 1 would ignore the pause.
    if (pause !== undefined && pause !== null) await versions.require(call, 'a pause');
    // And enforce the limits of an entity that has a bypass.
    if (bypass === true) await versions.require(call, 'a bypass');
    const deadline = deadlineIn(call.timeoutMs);
    try {
      return await writeChange(table, call.namespaceId, call, deadline, async () => plan(deadline));
    } finally {
      // A change that failed may still have been written.
      ownWrites.note(call.namespaceId, call.nowMs);
    }
  };

  return {
    create: (call, entity) => change(call, (deadline) => planCreation(table, call, entity, deadline), entity),
    update: (call, id, fields, seen) =>
      change(call, (deadline) => planUpdate(table, call, id, fields, seen, deadline), fields),
    delete: (call, id, seen = null) => change(call, (deadline) => planDeletion(table, call, id, seen, deadline)),
    pause: (call, id, pause) =>
      change(call, (deadline) => planEntityPause(table, call, id, pause, deadline), { pause }),

    async read(call, id) {
      await gate.check(call);
      const item = await readItem(table, buildEntityKey(call.namespaceId, id), deadlineIn(call.timeoutMs));
      return decoded(requireOwn(table, item));
    },

    async readMany(call, ids) {
      await gate.check(call);
      const items = await readEntityItems(table, call.namespaceId, ids, deadlineIn(call.timeoutMs));
      return items.map((item) => decoded(requireOwn(table, item)));
    },

    async list(call, page) {
      await gate.check(call);
      return listAll(table, call, page);
    },

    async children(call, parentId, page) {
      await gate.check(call);
      return listChildren(table, call, parentId, page);
    },
  };
}

async function planCreation(
  table: Table,
  call: AdminCall,
  entity: Omit<EntityRecord, 'createdAtMs' | 'version'>,
  deadline: Deadline,
): Promise<PlannedChange<EntityRecord>> {
  const { namespaceId: ns } = call;
  const { id, parentId } = entity;
  const there = await readItem(table, buildEntityKey(ns, id), deadline);
  if (there !== undefined) throw new EntityExists(id);
  if (parentId !== null) await readParents(table, ns, id, parentId, 0, deadline);
  const result = { ...entity, createdAtMs: call.nowMs, version: 1 };
  const actions = [putAction(table, encodeEntity(ns, result), ABSENT)];
  // Parents further up need no condition: a move of one of them checks the levels below it.
  if (parentId !== null) actions.push(countChildren(table, ns, parentId, 1, {}));
  return { result, write: { action: 'entity.create', subject: id, before: null, after: result, actions } };
}

async function planUpdate(
  table: Table,
  call: AdminCall,
  id: string,
  fields: EntityChange,
  seenVersion: number | null,
  deadline: Deadline,
): Promise<PlannedChange<EntityRecord>> {
  const { namespaceId: ns } = call;
  const item = requireOwn(table, await readItem(table, buildEntityKey(ns, id), deadline));
  if (item === undefined) throw new EntityNotFound(id);
  const before = decodeEntity(item);
  refuseOtherVersion(before, seenVersion);
  const { pause, ...others } = fields;
  const result = withPause(changedEntity(before, others), pause);
  const actions = [
    rewriteAction(table, ns, result, item),
    ...(await planReparenting(table, ns, item, result.parentId, deadline)),
  ];
  return { result, write: { action: 'entity.update', subject: id, before, after: result, actions } };
}

function rewriteAction(table: Table, ns: string, entity: EntityRecord, seen: Item): Action {
  const { PK: _pk, SK: _sk, ...set } = encodeEntity(ns, entity);
  const remove = OPTIONAL_ENTITY_ATTRIBUTES.filter((name) => !(name in set));
  return updateAction(table, buildEntityKey(ns, entity.id), { set, remove }, versionOf(seen));
}

async function planEntityPause(
  table: Table,
  { namespaceId: ns, nowMs }: AdminCall,
  id: string,
  wanted: Pause | null,
  deadline: Deadline,
): Promise<PlannedChange<PauseChange>> {
  const item = requireOwn(table, await readItem(table, buildEntityKey(ns, id), deadline));
  const stored = decoded(item);
  const result = planPause(stored?.pause, wanted);
  if (samePause(result.before, result.after)) return { result, write: null };
  const record = stored ?? newPausedEntity(id, nowMs);
  const paused = withPause({ ...record, version: record.version + 1 }, result.after);
  const own =
    item === undefined ? putAction(table, encodeEntity(ns, paused), ABSENT) : rewriteAction(table, ns, paused, item);
  const [action, subject, before, after] = auditOfPause('entity', id, result);
  return { result, write: { action, subject, before, after, actions: [own] } };
}

/**
 * Every entity above the new parent must be unchanged: of two moves that together would close a cycle, only one can
 * succeed.
 */
async function planReparenting(
  table: Table,
  ns: string,
  item: Item,
  parentId: string | null,
  deadline: Deadline,
): Promise<readonly Action[]> {
  const { id, parentId: oldParentId } = decodeEntity(item);
  if (parentId === oldParentId) return [];
  const parents =
    parentId === null
      ? new Map<string, Item>()
      : await readParents(table, ns, id, parentId, await readHeightBelow(table, ns, item, deadline), deadline);
  const actions = [...parents].map(([above, seen]) => {
    const by = above === parentId ? 1 : above === oldParentId ? -1 : 0;
    return by === 0
      ? checkAction(table, buildEntityKey(ns, above), versionOf(seen))
      : countChildren(table, ns, above, by, versionOf(seen));
  });
  return parents.has(oldParentId ?? '') ? actions : [...actions, ...(await leave(table, ns, oldParentId, deadline))];
}

async function planDeletion(
  table: Table,
  { namespaceId: ns, nowMs }: AdminCall,
  id: string,
  seenVersion: number | null,
  deadline: Deadline,
): Promise<PlannedChange<void>> {
  const key = buildEntityKey(ns, id);
  const item = requireOwn(table, await readItem(table, key, deadline));
  if (item === undefined) throw new EntityNotFound(id);
  refuseOtherVersion(decodeEntity(item), seenVersion);
  if (seenVersion === null) refusePaused(decodeEntity(item), nowMs);
  if (decodeChildren(item) > 0) throw new VersionConflict(id, await describeChildren(table, ns, id, deadline));
  const before = decodeEntity(item);
  const own = deleteAction(table, key, { ...versionOf(item), [CHILDREN]: item[CHILDREN] });
  const actions = [own, ...(await leave(table, ns, before.parentId, deadline))];
  return { result: undefined, write: { action: 'entity.delete', subject: id, before, after: null, actions } };
}

/** A parent that was deleted by other means must not block its children from leaving. */
async function leave(
  table: Table,
  ns: string,
  parentId: string | null,
  deadline: Deadline,
): Promise<readonly Action[]> {
  if (parentId === null || (await readItem(table, buildEntityKey(ns, parentId), deadline)) === undefined) return [];
  return [countChildren(table, ns, parentId, -1, {})];
}

function versionOf(item: Item): Seen {
  return { version: item['version'] };
}

function countChildren(table: Table, ns: string, id: string, by: number, seen: Seen): Action {
  return updateAction(table, buildEntityKey(ns, id), { add: { [CHILDREN]: by } }, seen);
}

async function describeChildren(table: Table, ns: string, id: string, deadline: Deadline): Promise<string> {
  for await (const row of readChildRows(table, ns, id, null, 1, deadline)) {
    return `it has children, such as ${childOf(row)}`;
  }
  return 'it has children';
}

async function listAll(table: Table, call: Call, page: PageRequest): Promise<Page<EntityRecord>> {
  const { namespaceId: ns, timeoutMs } = call;
  const deadline = deadlineIn(timeoutMs);
  const partitions = SUFFIXES.map((suffix) => index.all(ns, suffix));
  const range = { index: 'GSI4', partitions, ...behind(buildEntityKey(ns, '').PK, page.after) } as const;
  const load = async (rows: readonly Item[]) =>
    readEntities(
      table,
      ns,
      rows.map((row) => parseEntityKey(row['GSI4SK']?.S ?? '') ?? ''),
      deadline,
    );
  return pageOfRecords(
    readRows(table, range, page.limit + 1, () => deadline),
    page.limit,
    load,
    ({ id }) => id,
  );
}

async function listChildren(
  table: Table,
  call: Call,
  parentId: string,
  page: PageRequest,
): Promise<Page<EntityRecord>> {
  const { namespaceId: ns, timeoutMs } = call;
  const deadline = deadlineIn(timeoutMs);
  const load = async (rows: readonly Item[]) => {
    const entities = await readEntities(table, ns, rows.map(childOf), deadline);
    // The index may still list a child that has left.
    return entities.map((entity) => (entity?.parentId === parentId ? entity : undefined));
  };
  const rows = readChildRows(table, ns, parentId, page.after, page.limit + 1, deadline);
  return pageOfRecords(rows, page.limit, load, ({ id }) => id);
}

/** For lists: leaves out foreign records. */
async function readEntities(
  table: Table,
  ns: string,
  ids: readonly string[],
  deadline: Deadline,
): Promise<readonly (EntityRecord | undefined)[]> {
  const items = await readEntityItems(table, ns, ids, deadline);
  return items.map((item) => decoded(ownOrNothing(item)));
}

async function readEntityItems(
  table: Table,
  ns: string,
  ids: readonly string[],
  deadline: Deadline,
): Promise<readonly (Item | undefined)[]> {
  const keys = ids.map((id) => buildEntityKey(ns, id));
  return readItems(table, keys, deadline);
}

function decoded(item: Item | undefined): EntityRecord | undefined {
  return item === undefined ? undefined : decodeEntity(item);
}
