import type {
  AuditAction,
  NamespaceRecord,
  NamespaceStore,
  Page,
  PageRequest,
  RegistryCall,
  RegistryChange,
} from '../../../backend.js';
import { NamespaceNotFound } from '../../../core/errors.js';
import { requireOrphan, requireRecoverable } from '../../../core/config/namespaces.js';
import { text } from '../table/attributes.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { isForeign, requireOwn } from '../table/foreign-record.js';
import {
  buildNamespaceIdKey,
  buildNamespaceKey,
  NAMESPACE_ID_PREFIX,
  NAMESPACE_PREFIX,
  REGISTRY,
} from '../table/keys.js';
import { decodeNamespace, encodeNamespace, NAMESPACE_ID } from '../table/records.js';
import { readItem, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { ABSENT, deleteAction, putAction, type Seen } from './actions.js';
import { listAuditOf } from './audit.js';
import { type PlannedChange, writeChange } from './change.js';
import type { NamespaceGate } from '../schema/namespace-gate.js';
import { purgeNamespace } from './purge.js';
import { behind, pageOfRecords, readRows } from './rows.js';

/**
 * The registry of namespaces. A namespace has a permanent record under its id, and one under its name while it is
 * active. Both change in one transaction.
 */
export function createNamespaceStore(table: Table, gate: NamespaceGate): NamespaceStore {
  /** Drops the cache entry in any case: a change that failed may still have been written. */
  const forgetting = async <T>(id: () => string | undefined, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } finally {
      gate.forget(id() ?? '');
    }
  };

  const write = async <T>(
    call: RegistryChange,
    plan: (deadline: Deadline) => Promise<PlannedChange<T>>,
  ): Promise<T> => {
    const deadline = deadlineIn(call.timeoutMs);
    return writeChange(table, REGISTRY, call, deadline, async () => plan(deadline));
  };

  return {
    async register(call, name, id) {
      const created: NamespaceRecord = { id, name, status: 'active', createdAtMs: call.nowMs };
      return write(call, async (deadline) => {
        const existing = await readByName(table, name, deadline);
        if (existing !== undefined) return { result: existing, write: null };
        return planStatus(table, call, 'namespace.register', null, created);
      });
    },

    async read(call, name) {
      const namespace = await readByName(table, name, deadlineIn(call.timeoutMs));
      if (namespace !== undefined) gate.remember(namespace, call.nowMs);
      return namespace;
    },

    async delete(call, name) {
      let active: NamespaceRecord | undefined;
      const close = async (): Promise<NamespaceRecord> =>
        write(call, async (deadline) => {
          active = await readByName(table, name, deadline);
          if (active === undefined) throw new NamespaceNotFound(name);
          return planStatus(table, call, 'namespace.delete', active, { ...active, status: 'deleted' });
        });
      return forgetting(() => active?.id, close);
    },

    async recover(call, id) {
      const reopen = async (): Promise<NamespaceRecord> =>
        write(call, async (deadline) => {
          const orphan = requireOrphan(await readById(table, id, deadline), id, 'recovered');
          requireRecoverable(orphan, await readByName(table, orphan.name, deadline));
          return planStatus(table, call, 'namespace.recover', orphan, { ...orphan, status: 'active' });
        });
      return forgetting(() => id, reopen);
    },

    async purge(call, id) {
      /** Resolves false if the namespace is purging already and no further record is needed. */
      const note = async (isFurtherPass: boolean): Promise<boolean> =>
        write(call, async (deadline) => {
          const orphan = requireOrphan(await readById(table, id, deadline), id, 'purged');
          if (orphan.status === 'purging' && !isFurtherPass) return { result: false, write: null };
          const plan = planStatus(table, call, 'namespace.purge', orphan, { ...orphan, status: 'purging' });
          return { ...plan, result: true };
        });
      // First, so that the namespace cannot be recovered while its records are removed.
      const isFirstPass = await forgetting(
        () => id,
        async () => note(false),
      );
      const removed = await purgeNamespace(table, id, call.timeoutMs);
      if (!isFirstPass && removed > 0) await note(true);
      return removed;
    },

    list: (call, page) => listRegistry(table, NAMESPACE_PREFIX, ({ name }) => name, call, page),
    orphans: (call, page) => listRegistry(table, NAMESPACE_ID_PREFIX, ({ id }) => id, call, page),
    audit: (call, name, page) => listAuditOf(table, REGISTRY, `$NAMESPACE:${name}`, call, page),
  };
}

async function readByName(table: Table, name: string, deadline: Deadline): Promise<NamespaceRecord | undefined> {
  return decoded(requireOwn(table, await readItem(table, buildNamespaceKey(name), deadline)));
}

async function readById(table: Table, id: string, deadline: Deadline): Promise<NamespaceRecord | undefined> {
  return decoded(requireOwn(table, await readItem(table, buildNamespaceIdKey(id), deadline)));
}

function decoded(item: Item | undefined): NamespaceRecord | undefined {
  return item === undefined ? undefined : decodeNamespace(item);
}

/** Under its id, every namespace has a record, which must be unchanged. Under its name, only an active one has. */
function planStatus(
  table: Table,
  { nowMs }: RegistryCall,
  action: AuditAction,
  before: NamespaceRecord | null,
  after: NamespaceRecord,
): PlannedChange<NamespaceRecord> {
  const seen = before === null ? ABSENT : { status: text(before.status) };
  const actions = [putAction(table, encodeNamespace('id', after, nowMs), seen)];
  if (after.status === 'active') actions.push(putAction(table, encodeNamespace('name', after, nowMs), ABSENT));
  else if (before?.status === 'active') actions.push(deleteAction(table, buildNamespaceKey(after.name), idOf(after)));
  return { result: after, write: { action, subject: `$NAMESPACE:${after.name}`, before, after, actions } };
}

function idOf({ id }: NamespaceRecord): Seen {
  return { [NAMESPACE_ID]: text(id) };
}

/** Name records exist for active namespaces only. Id records exist for all; the list returns the inactive ones. */
function listRegistry(
  table: Table,
  prefix: typeof NAMESPACE_PREFIX | typeof NAMESPACE_ID_PREFIX,
  cursorOf: (namespace: NamespaceRecord) => string,
  { timeoutMs }: RegistryCall,
  page: PageRequest,
): Promise<Page<NamespaceRecord>> {
  const deadline = deadlineIn(timeoutMs);
  const partitions = [buildNamespaceKey('').PK];
  const rows = readRows(
    table,
    { index: null, partitions, ...behind(prefix, page.after) },
    page.limit + 1,
    () => deadline,
  );
  const load = (items: readonly Item[]) =>
    items
      .filter((item) => !isForeign(item))
      .map(decodeNamespace)
      .map((namespace) => (prefix === NAMESPACE_PREFIX || namespace.status !== 'active' ? namespace : undefined));
  return pageOfRecords(rows, page.limit, load, cursorOf);
}
