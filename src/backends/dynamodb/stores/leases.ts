import type { LeaseRecord, LeaseStore } from '../../../backend.js';
import { parsePlainResource } from '../../../core/identifiers.js';
import { pageOf } from '../../../core/paging.js';
import { readKey } from '../table/attributes.js';
import { deadlineIn } from '../client/deadline.js';
import { index, parseShardKey } from '../table/keys.js';
import { readBuckets } from '../table/read-buckets.js';
import type { Table } from '../client/requests.js';
import type { NamespaceGate } from './namespace-gate.js';
import { behind, readRows } from './rows.js';

const EXPECTED_ROWS = 1_000;

/** The holders of one entity and resource: of its bucket, and of its buckets for per-call limits. */
export function createLeaseStore(table: Table, gate: NamespaceGate): LeaseStore {
  return {
    async list(call, entityId, resource, page) {
      await gate.check(call);
      const deadline = deadlineIn(call.timeoutMs);
      const { namespaceId: ns } = call;
      // The plain bucket is read by its key, because the index is eventually consistent.
      const resources = new Set([resource]);
      const partitions = [index.bucketsOfEntity(ns, entityId)];
      const range = { index: 'GSI3', partitions, ...behind(`BUCKET#${resource}~`, null) } as const;
      for await (const row of readRows(table, range, EXPECTED_ROWS, () => deadline)) {
        const key = parseShardKey(readKey(row).PK);
        if (key !== null && parsePlainResource(key.resource) === resource) resources.add(key.resource);
      }
      const refs = [...resources].map((keyPart) => ({ entityId, resource: keyPart }));
      const buckets = await readBuckets(table, ns, refs, deadline);
      const leases = buckets.flat().flatMap(({ holders }) => [...holders].map(([id, holder]) => leaseOf(id, holder)));
      return pageOf(leases, page, ({ id }) => id);
    },
  };
}

function leaseOf(
  id: string,
  { expiresAtMs, acquiredAtMs, slots, rates, caller }: LeaseRecord | Omit<LeaseRecord, 'id'>,
): LeaseRecord {
  return { id, expiresAtMs, acquiredAtMs, slots, rates, caller };
}
