import type { Call, UsageQuery, UsageRecord, UsageStore } from '../../../backend.js';
import { usageLifeMs } from '../../../core/usage/usage.js';
import type { EpochMs } from '../../../core/units.js';
import { readKey } from '../table/attributes.js';
import { deadlineIn } from '../../../machine-time.js';
import { buildEntityKey, buildUsagePrefix, index, printInstant, SUFFIXES } from '../table/keys.js';
import { decodeUsage } from '../table/records.js';
import { readItems } from '../client/batches.js';
import type { Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import type { NamespaceGate } from '../schema/namespace-gate.js';
import { pageOfRecords, readRows, type RowRange } from './rows.js';

/** Usage records. The stream worker writes them. */
export function createUsageStore(table: Table, gate: NamespaceGate): UsageStore {
  return {
    async query(call, query, page) {
      await gate.check(call);
      const deadline = deadlineIn(call.timeoutMs);
      const range = rangeOf(call, query, page.after);
      const rows = readRows(table, range, page.limit + 1, () => deadline);
      const load = async (found: readonly Item[]) => {
        // The table has whole records, an index only their keys.
        const items = range.index === null ? found : await readItems(table, found.map(readKey), deadline);
        return items.map((item) => (item === undefined ? undefined : shown(decodeUsage(item))));
      };
      return pageOfRecords(rows, page.limit, load, cursorOf);
    },
  };
}

/**
 * Hides records that are all zero: a take and its compensation that the stream delivered in different batches leave
 * one.
 */
function shown(record: UsageRecord): UsageRecord | undefined {
  const isUsed = [...record.consumedMilli.values()].some((milli) => milli !== 0);
  return isUsed || record.acquires !== 0 || record.expired !== 0 ? record : undefined;
}

/** The order of records as text: time, then entity. */
function cursorOf({ startMs, entityId }: UsageRecord): string {
  return `${printInstant(startMs)}#${entityId}`;
}

function rangeOf({ namespaceId: ns, nowMs }: Call, query: UsageQuery, after: string | null): RowRange {
  const { entityId, resource, window } = query;
  // An expired record is hidden even before TTL removes it.
  const fromMs = Math.max(query.fromMs, nowMs - usageLifeMs(window));
  const ends = { first: printable(fromMs), last: printable(query.toMs - 1) };
  if (entityId !== null) {
    const prefix = buildUsagePrefix(resource, window);
    const start = after === null ? null : `${after.split('#')[0] ?? ''} `;
    return {
      index: null,
      partitions: [buildEntityKey(ns, entityId).PK],
      from: prefix + laterOf(ends.first, start),
      to: prefix + ends.last,
    };
  }
  const prefix = `USAGE#${window}#`;
  return {
    index: 'GSI2',
    partitions: SUFFIXES.map((suffix) => index.resource(ns, resource, suffix)),
    from: prefix + laterOf(ends.first, after === null ? null : `${after} `),
    // After every entity of the last instant.
    to: `${prefix}${ends.last}#\u007f`,
  };
}

function laterOf(first: string, start: string | null): string {
  return start !== null && start > first ? start : first;
}

const LAST_PRINTABLE_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Times outside the years with four digits would not sort correctly. */
function printable(ms: EpochMs): string {
  return printInstant(Math.min(Math.max(ms, 0), LAST_PRINTABLE_MS));
}
