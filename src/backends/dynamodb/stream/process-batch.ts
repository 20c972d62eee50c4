import type { EpochMs } from '../../../core/units.js';
import { USAGE_WINDOWS, type UsageWindow } from '../../../core/usage/usage.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { REGISTRY } from '../table/keys.js';
import type { Table } from '../client/requests.js';
import { type Archive, archivedRecordOf, archiveRecord } from './archive/archive.js';
import { type AuditChange, type BucketChange, decodeChange, type Poison } from './decode.js';
import type { DeferredUsage } from './usage/deferred-usage.js';
import type { SplitAhead } from './split-ahead.js';
import { addUsageOf, isCountable, poisonOf, readStatuses } from './usage/write-usage.js';

/** The dependencies of processing a batch. */
export interface BatchTools {
  readonly table: Table;
  /** null: audit records that expire are not archived. */
  readonly archive: Archive | null;
  /** null: shards are split only by the processes that write to them. */
  readonly splitAhead: SplitAhead | null;
  readonly now: () => EpochMs;
  /** Called for skipped records: they cannot be decoded, or DynamoDB permanently refuses to count them. */
  readonly onPoison: (poison: Poison) => void;
  /** Called for errors that do not make a record be retried. */
  readonly onError: (error: unknown, where: string) => void;
}

/** A record that must be retried, together with all that follow. */
export interface FailedRecord {
  /** The index in the batch. */
  readonly at: number;
  /** In the stream's format. */
  readonly sequenceNumber: string;
  readonly error: unknown;
}

export interface BatchResult {
  /** In the order of the batch; the caller retries from the first one. */
  readonly failures: readonly FailedRecord[];
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
}

/** Less than the time that a purge waits before it deletes, so that nothing is written into a purged namespace. */
const BATCH_MS = 30_000;
const HOURS: readonly UsageWindow[] = ['hourly'];
const MAX_CONCURRENT_PUTS = 16;

/**
 * Processes one batch of a stream: counts usage, archives expired audit records, splits busy shards. Never rejects
 * because of a record. A record that cannot be decoded, or that DynamoDB permanently refuses, is reported and skipped;
 * one that could not be processed is a failure. A batch may be delivered again, whole or in part. With `deferred`,
 * usage of days and months is added there to be written later.
 */
export async function processBatch(
  tools: BatchTools,
  streamLabel: string,
  records: readonly unknown[],
  deferred: DeferredUsage | null = null,
): Promise<BatchResult> {
  const deadline = deadlineIn(BATCH_MS);
  const failed = new Map<string, unknown>();
  const { buckets, audits, poison: unreadable } = sort(tools, streamLabel, records);
  reportUnknown(tools, buckets);
  const refused = new Set<string>();
  let archived = 0;
  let splits = 0;
  try {
    const ids = new Set([...buckets, ...audits].map(({ ns }) => ns).filter((ns) => ns !== REGISTRY));
    const statuses = await readStatuses(tools.table, ids, deadline);
    const countable = buckets.filter(({ ns }) => isCountable(statuses.get(ns)));
    const archivable = audits.filter(({ ns }) => ns === REGISTRY || isCountable(statuses.get(ns)));
    deferred?.add(countable, tools.now());
    const windows = deferred === null ? USAGE_WINDOWS : HOURS;
    const added = await addUsageOf(tools.table, countable, deadline, windows);
    for (const [{ parts }, error] of added.failed) for (const { sequence } of parts) failed.set(sequence, error);
    for (const one of added.refused) {
      tools.onPoison(poisonOf(one));
      for (const { sequence } of one.parts) refused.add(sequence);
    }
    archived = await archiveAll(tools.archive, archivable, failed);
    const active = buckets.filter(
      ({ ns, unknownAttribute }) => statuses.get(ns) === 'active' && unknownAttribute === null,
    );
    splits = await splitBusy(tools, active, deadline);
  } catch (error) {
    // The namespaces are not known, so the whole batch must be retried.
    for (const { sequence } of [...buckets, ...audits]) failed.set(sequence, error);
  }
  const poison = unreadable + refused.size;
  return { failures: inOrder(records, streamLabel, failed), poison, archived, splits };
}

function sort({ onPoison, archive }: BatchTools, streamLabel: string, records: readonly unknown[]) {
  const buckets: BucketChange[] = [];
  const audits: AuditChange[] = [];
  let poison = 0;
  for (const record of records) {
    const change = decodeChange(record, streamLabel);
    if (change.kind === 'bucket') buckets.push(change);
    else if (change.kind === 'audit' && archive !== null && archivedRecordOf(change) !== null) audits.push(change);
    else if (change.kind === 'poison') {
      poison += 1;
      onPoison(change);
    }
  }
  return { buckets, audits, poison };
}

/** A later version runs at the same time. What it counts in the same way is counted, and the rest is reported to the operator. */
function reportUnknown({ onError }: BatchTools, buckets: readonly BucketChange[]): void {
  for (const name of new Set(buckets.map(({ unknownAttribute }) => unknownAttribute))) {
    if (name === null) continue;
    onError(new RangeError(`Buckets have an attribute ${name}, which this version does not know`), 'reading a bucket');
  }
}

async function archiveAll(
  archive: Archive | null,
  audits: readonly AuditChange[],
  failed: Map<string, unknown>,
): Promise<number> {
  let archived = 0;
  for (let at = 0; at < audits.length; at += MAX_CONCURRENT_PUTS) {
    await Promise.all(
      audits.slice(at, at + MAX_CONCURRENT_PUTS).map(async (change) => {
        const record = archivedRecordOf(change);
        if (archive === null || record === null) return;
        try {
          await archiveRecord(archive, record);
          archived += 1;
        } catch (error) {
          failed.set(change.sequence, error);
        }
      }),
    );
  }
  return archived;
}

/** A failed split needs no retry: a shard that stays busy is seen again. */
async function splitBusy(tools: BatchTools, changes: readonly BucketChange[], deadline: Deadline): Promise<number> {
  try {
    return (await tools.splitAhead?.splitBusy(changes, tools.now(), deadline)) ?? 0;
  } catch (error) {
    tools.onError(error, 'splitting a busy bucket');
    return 0;
  }
}

function inOrder(
  records: readonly unknown[],
  streamLabel: string,
  failed: ReadonlyMap<string, unknown>,
): readonly FailedRecord[] {
  if (failed.size === 0) return [];
  return records.flatMap((record, at) => {
    const { sequence } = decodeChange(record, streamLabel);
    const sequenceNumber = sequenceNumberOf(record);
    if (sequence === null || sequenceNumber === null || !failed.has(sequence)) return [];
    return [{ at, sequenceNumber, error: failed.get(sequence) }];
  });
}

/** In the stream's format. */
export function sequenceNumberOf(record: unknown): string | null {
  const { dynamodb } = (record ?? {}) as { readonly dynamodb?: { readonly SequenceNumber?: unknown } };
  return typeof dynamodb?.SequenceNumber === 'string' ? dynamodb.SequenceNumber : null;
}
