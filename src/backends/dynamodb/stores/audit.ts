import type { AuditPageRequest, AuditRecord, AuditStore, Page, RegistryCall } from '../../../backend.js';
import { AUDIT_LIFE_MS } from '../../../core/usage/usage.js';
import { readKey } from '../table/attributes.js';
import { deadlineIn } from '../../../machine-time.js';
import { ownOrNothing } from '../table/foreign-record.js';
import { AUDIT_PREFIX, buildAuditKey, index, SUFFIXES } from '../table/keys.js';
import { decodeAudit } from '../table/records.js';
import { readItems } from '../client/batches.js';
import type { Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import type { NamespaceGate } from '../schema/namespace-gate.js';
import { beyond, pageOfRecords, readRows } from './rows.js';

export function createAuditStore(table: Table, gate: NamespaceGate): AuditStore {
  return {
    async list(call, subject, page) {
      await gate.check(call);
      const { namespaceId: ns } = call;
      return subject === null ? listAll(table, ns, call, page) : listAuditOf(table, ns, subject, call, page);
    },
  };
}

/** Audit records of one subject, in the order of time or its reverse. */
export function listAuditOf(
  table: Table,
  ns: string,
  subject: string,
  { nowMs, timeoutMs }: RegistryCall,
  page: AuditPageRequest,
): Promise<Page<AuditRecord>> {
  const deadline = deadlineIn(timeoutMs);
  const partitions = [buildAuditKey(ns, subject, '').PK];
  const range = { index: null, partitions, ...beyond(AUDIT_PREFIX, page) };
  const rows = readRows(table, range, page.limit + 1, () => deadline);
  return pageOfRecords(
    rows,
    page.limit,
    (items) => items.map((item) => shown(item, nowMs)),
    ({ id }) => id,
  );
}

/** Audit records of all subjects, in the order of time or its reverse: the index sorts them by id. */
function listAll(
  table: Table,
  ns: string,
  { nowMs, timeoutMs }: RegistryCall,
  page: AuditPageRequest,
): Promise<Page<AuditRecord>> {
  const deadline = deadlineIn(timeoutMs);
  const partitions = SUFFIXES.map((suffix) => index.all(ns, suffix));
  const range = { index: 'GSI4', partitions, ...beyond(index.audit(ns, ''), page) } as const;
  const load = async (rows: readonly Item[]) => {
    const items = await readItems(table, rows.map(readKey), deadline);
    return items.map((item) => shown(item, nowMs));
  };
  return pageOfRecords(
    readRows(table, range, page.limit + 1, () => deadline),
    page.limit,
    load,
    ({ id }) => id,
  );
}

/** An expired record is hidden even before TTL removes it. */
function shown(item: Item | undefined, nowMs: number): AuditRecord | undefined {
  const own = ownOrNothing(item);
  const record = own === undefined ? undefined : decodeAudit(own);
  return record !== undefined && record.atMs >= nowMs - AUDIT_LIFE_MS ? record : undefined;
}
