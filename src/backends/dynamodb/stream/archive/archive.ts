import { gzipSync } from 'node:zlib';
import type { AuditChange } from '../decode.js';

/** Stores audit records that expire in the table. */
export interface Archive {
  /** Stores the bytes under the key, replacing earlier ones. Rejects unless they are stored durably. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Rejects if a requirement is missing. A worker checks at its start, long before the first record expires. */
  check?(): Promise<void>;
  /** Ends the connections of the archive. */
  close?(): void;
}

/** One archived record: its key, which is the same when the record is delivered again, and its line. */
export interface ArchivedRecord {
  readonly key: string;
  readonly line: string;
}

/**
 * The archived form of an audit change; null: the record did not expire. A record that was deleted by hand or by a
 * purge is meant to be deleted.
 */
export function archivedRecordOf(change: AuditChange): ArchivedRecord | null {
  if (change.event !== 'REMOVE' || !change.expired) return null;
  const { ns, eventId, record } = change;
  const at = new Date(record.atMs).toISOString();
  const [year, month, day] = at.slice(0, 10).split('-');
  const name = eventId.replaceAll(/[^A-Za-z0-9_-]/g, '-');
  const { id, principal, action, subject, before, after } = record;
  return {
    key: `audit/namespace=${ns}/year=${year}/month=${month}/day=${day}/${name}.jsonl.gz`,
    line: `${JSON.stringify({ namespace: ns, id, at, principal, action, subject, before, after })}\n`,
  };
}

export async function archiveRecord(archive: Archive, { key, line }: ArchivedRecord): Promise<void> {
  await archive.put(key, gzipSync(line));
}
