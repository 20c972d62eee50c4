import { hasExpired } from '../../../core/bucket/give-back.js';
import { AUDIT_LIFE_MS, usageLifeMs, type UsageWindow } from '../../../core/usage/usage.js';
import type { EpochMs } from '../../../core/units.js';
import { isForgettable } from '../usage.js';
import { decodeBucket } from './rows/codec.js';
import type { SqlValue } from './database/driver.js';
import { FileSpace } from './file-space.js';
import type { Statements } from './database/statements.js';

/** Write transactions of this process between two rounds of cleaning. */
const WRITES_PER_ROUND = 1_000;

/** Rows of each table that one round reads: twice what can have been added since the last round. */
const ROWS_PER_ROUND = 2 * WRITES_PER_ROUND;

/** Below this number of buckets, idle ones are not removed. */
const KEPT_BUCKETS = 10_000;

/**
 * Removes what no answer depends on: idle buckets of a large file, expired usage, audit records and receipts. Each
 * round scans a bounded number of rows of each table from a cursor, inside a write transaction: no timer, no extra
 * process, and no call that pays for all of it.
 */
export class Maintenance {
  readonly #sql: Statements;
  #writes = 0;
  readonly #cursors = new Map<string, readonly SqlValue[]>();

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Called in every write transaction. */
  afterWrite(nowMs: EpochMs): void {
    this.#writes += 1;
    if (this.#writes % WRITES_PER_ROUND === 0) this.clean(nowMs);
  }

  clean(nowMs: EpochMs): void {
    if (this.#sql(`SELECT 1 FROM buckets LIMIT 1 OFFSET ${KEPT_BUCKETS}`).get() !== undefined)
      this.#cleanBuckets(nowMs);
    this.#cleanUsage(nowMs);
    this.#cleanAudit(nowMs);
    this.#cleanReceipts(nowMs);
  }

  #cleanBuckets(nowMs: EpochMs): void {
    for (const row of this.#nextRows('buckets', ['ns', 'entity', 'resource'], 'state')) {
      const [ns, entityId, resource, state] = row as [string, string, string, string];
      const bucket = decodeBucket(state);
      const space = new FileSpace(this.#sql, ns);
      // With the holders, usage may have been folded into records: the bucket must say so, or it would count again.
      const isReclaimed = hasExpired(bucket, nowMs);
      if (!isForgettable(space, { entityId, resource }, bucket, nowMs)) {
        if (isReclaimed) space.writeBucket(entityId, resource, bucket);
        continue;
      }
      this.#sql('DELETE FROM buckets WHERE ns = ? AND entity = ? AND resource = ?').run(ns, entityId, resource);
    }
  }

  #cleanUsage(nowMs: EpochMs): void {
    for (const row of this.#nextRows('usage', ['ns', 'entity', 'resource', 'win', 'start'])) {
      const [ns, entity, resource, win, start] = row as [string, string, string, UsageWindow, number];
      if (start >= nowMs - usageLifeMs(win)) continue;
      this.#sql('DELETE FROM usage WHERE ns = ? AND entity = ? AND resource = ? AND win = ? AND start = ?').run(
        ns,
        entity,
        resource,
        win,
        start,
      );
    }
  }

  #cleanAudit(nowMs: EpochMs): void {
    for (const row of this.#nextRows('audit', ['ns', 'id'], 'at')) {
      const [ns, id, at] = row as [string, string, number];
      if (at < nowMs - AUDIT_LIFE_MS) this.#sql('DELETE FROM audit WHERE ns = ? AND id = ?').run(ns, id);
    }
  }

  #cleanReceipts(nowMs: EpochMs): void {
    for (const row of this.#nextRows('receipts', ['ns', 'entity', 'resource', 'id'], 'ends_at')) {
      const [ns, entity, resource, id, endsAtMs] = row as [string, string, string, string, number];
      if (endsAtMs > nowMs) continue;
      this.#sql('DELETE FROM receipts WHERE ns = ? AND entity = ? AND resource = ? AND id = ?').run(
        ns,
        entity,
        resource,
        id,
      );
    }
  }

  /** The rows after those of the last round, in key order; restarts after the last row. */
  #nextRows(table: string, key: readonly string[], ...columns: readonly string[]): readonly (readonly SqlValue[])[] {
    const keys = key.join(', ');
    const marks = key.map(() => '?').join(', ');
    const seen = this.#cursors.get(table) ?? key.map(() => '');
    const rows = this.#sql(
      `SELECT ${[...key, ...columns].join(', ')} FROM ${table} WHERE (${keys}) > (${marks}) ORDER BY ${keys} LIMIT ?`,
    ).all(...seen, ROWS_PER_ROUND);
    const last = rows.length < ROWS_PER_ROUND ? undefined : rows.at(-1);
    if (last === undefined) this.#cursors.delete(table);
    else this.#cursors.set(table, last.slice(0, key.length));
    return rows;
  }
}
