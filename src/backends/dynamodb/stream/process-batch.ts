import type { EpochMs } from '../../../core/units.js';
import { USAGE_WINDOWS, type UsageWindow } from '../../../core/usage/usage.js';
import { type Deadline, deadlineIn } from '../client/deadline.js';
import { REGISTRY } from '../table/keys.js';
import type { Table } from '../client/requests.js';
import { type Archive, archivedRecordOf, archiveRecord } from './archive/archive.js';
import { type AuditChange, type BucketChange, decodeChange, type Poison } from './decode.js';
import type { DeferredUsage } from './usage/deferred-usage.js';
import type { SplitAhead } from './split-ahead.js';
import { addUsageOf, isCountable, poisonOf, readStatuses } from './usage/write-usage.js';

/** What a batch is processed with. */
export interface BatchTools {
  readonly table: Table;
  /** null: audit records that expire are gone. */
  readonly archive: Archive | null;
  /** null: shards are split only by those who write to them. */
  readonly splitAhead: SplitAhead | null;
  readonly now: () => EpochMs;
  /** Hears of records that were passed over: they cannot be understood, or DynamoDB refuses for ever to count them. */
  readonly onPoison: (poison: Poison) => void;
  /** Hears of what went wrong that no record has to come again for. */
  readonly onError: (error: unknown, where: string) => void;
}

/** A record that must come again, and with it all that follow. */
export interface FailedRecord {
  /** Its place in the batch. */
  readonly at: number;
  /** As the stream spells it. */
  readonly sequenceNumber: string;
  readonly error: unknown;
}

export interface BatchResult {
  /** In the order of the batch; whoever runs it begins again with the first. */
  readonly failures: readonly FailedRecord[];
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
}

/** Less than the time that a purge waits before it deletes, so that nothing is written into a namespace afterwards. */
const BATCH_MS = 30_000;
const HOURS: readonly UsageWindow[] = ['hourly'];
const MAX_PUTS_AT_ONCE = 16;

/**
 * Everything that is done with one batch of a stream: usage is counted, expired audit records are archived, busy shards
 * are split. Never rejects because of a record: one that cannot be understood, or that DynamoDB will never accept, is
 * reported and passed over, one that could not be dealt with is a failure. A batch may come again, whole or in part. With `deferred`, usage of days and
 * months is left there for later.
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
  tellUnknown(tools, buckets);
  const refused = new Set<string>();
  let archived = 0;
  let splits = 0;
  try {
    const ids = new Set([...buckets, ...audits].map(({ ns }) => ns).filter((ns) => ns !== REGISTRY));
    const statuses = await readStatuses(tools.table, ids, deadline);
    const countable = buckets.filter(({ ns }) => isCountable(statuses.get(ns)));
    const lasting = audits.filter(({ ns }) => ns === REGISTRY || isCountable(statuses.get(ns)));
    deferred?.add(countable, tools.now());
    const windows = deferred === null ? USAGE_WINDOWS : HOURS;
    const added = await addUsageOf(tools.table, countable, deadline, windows);
    for (const [{ parts }, error] of added.failed) for (const { sequence } of parts) failed.set(sequence, error);
    for (const one of added.refused) {
      tools.onPoison(poisonOf(one));
      for (const { sequence } of one.parts) refused.add(sequence);
    }
    archived = await archiveAll(tools.archive, lasting, failed);
    const active = buckets.filter(
      ({ ns, unknownAttribute }) => statuses.get(ns) === 'active' && unknownAttribute === null,
    );
    splits = await splitBusy(tools, active, deadline);
  } catch (error) {
    // Of which namespaces they are is not known: all of them come again.
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

/** A later version runs beside this one: what it counts in the same way is counted, and somebody should know. */
function tellUnknown({ onError }: BatchTools, buckets: readonly BucketChange[]): void {
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
  for (let at = 0; at < audits.length; at += MAX_PUTS_AT_ONCE) {
    await Promise.all(
      audits.slice(at, at + MAX_PUTS_AT_ONCE).map(async (change) => {
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

/** Nobody has to come again for a split: a shard that stays busy is seen again. */
async function splitBusy(tools: BatchTools, changes: readonly BucketChange[], deadline: Deadline): Promise<number> {
  try {
    return (await tools.splitAhead?.tend(changes, tools.now(), deadline)) ?? 0;
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

/** As the stream itself spells it. */
export function sequenceNumberOf(record: unknown): string | null {
  const { dynamodb } = (record ?? {}) as { readonly dynamodb?: { readonly SequenceNumber?: unknown } };
  return typeof dynamodb?.SequenceNumber === 'string' ? dynamodb.SequenceNumber : null;
}
