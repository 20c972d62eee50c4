import { gzipSync } from 'node:zlib';
import type { AuditChange } from '../decode.js';

/** Where audit records go when their time in the table is over. */
export interface Archive {
  /** Keeps the bytes under the key, in place of what it kept there. Rejects unless they are kept for certain. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Rejects if something is missing that it needs: a worker asks at its start, long before the first record expires. */
  check?(): Promise<void>;
  close?(): void;
}

/** One record as it is archived: its key, which a repetition has too, and its line. */
export interface ArchivedRecord {
  readonly key: string;
  readonly line: string;
}

/**
 * What an audit change leaves in the archive; null: nothing, because it was not removed by its time. Whoever deletes a
 * record by hand, or purges a namespace, wants it gone.
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
