import type { Page, PageRequest, UsageQuery, UsageRecord } from '../../../../backend.js';
import {
  addUsage,
  USAGE_WINDOWS,
  type UsageCounts,
  type UsageWindow,
  windowStart,
} from '../../../../core/usage/usage.js';
import type { EpochMs } from '../../../../core/units.js';
import { usageKey } from '../../usage.js';
import { decodeCounts, encodeCounts } from './codec.js';
import type { SqlValue } from '../database/driver.js';
import { pageOfRows, type Statements } from '../database/statements.js';

/** Adds to the hourly, daily and monthly rows that contain the hour. */
export function addToUsage(
  sql: Statements,
  ns: string,
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
  hourMs: EpochMs,
  counts: UsageCounts,
): void {
  for (const window of USAGE_WINDOWS) {
    const key = [ns, entityId, resource, window, windowStart(window, hourMs)] as const;
    const row = sql(
      'SELECT counts FROM usage WHERE ns = ? AND entity = ? AND resource = ? AND win = ? AND start = ?',
    ).get(...key);
    const sum = row === undefined ? counts : addUsage(decodeCounts(String(row[0])), counts);
    sql('INSERT OR REPLACE INTO usage (ns, entity, resource, win, start, counts) VALUES (?, ?, ?, ?, ?, ?)').run(
      ...key,
      encodeCounts(sum),
    );
  }
}

/** In the order of time, then of the entity. */
export function selectUsage(
  sql: Statements,
  ns: string,
  { entityId, resource, window, fromMs, toMs }: UsageQuery,
  { limit, after }: PageRequest,
): Page<UsageRecord> {
  const [start = '0', entity = ''] = after === null ? [] : splitOnce(after);
  const range = [Math.max(0, fromMs), toMs, Number(start), entity, limit + 1] as const;
  const inRange = 'start >= ? AND start < ? AND (start, entity) > (?, ?) ORDER BY start, entity LIMIT ?';
  const rows =
    entityId === null
      ? sql(`SELECT entity, start, counts FROM usage WHERE ns = ? AND resource = ? AND win = ? AND ${inRange}`).all(
          ns,
          resource,
          window,
          ...range,
        )
      : sql(
          `SELECT entity, start, counts FROM usage WHERE ns = ? AND entity = ? AND resource = ? AND win = ? AND ${inRange}`,
        ).all(ns, entityId, resource, window, ...range);
  return pageOfRows(rows, limit, (row) => decodeUsage(row, resource, window), usageKey);
}

function decodeUsage(row: readonly SqlValue[], resource: string, window: UsageWindow): UsageRecord {
  const [entityId, startMs, counts] = row as [string, number, string];
  return { ...decodeCounts(counts), entityId, resource, window, startMs };
}

function splitOnce(key: string): [start: string, entity: string] {
  const cut = key.indexOf('#');
  return [key.slice(0, cut), key.slice(cut + 1)];
}
