import { buildBucketKey } from '../../../core/identifiers.js';
import type { EpochMs } from '../../../core/units.js';
import { readKey } from '../table/attributes.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { buildShardKey, index, parseShardKey } from '../table/keys.js';
import { readItems } from '../client/batches.js';
import type { Table } from '../client/requests.js';
import { checkSchema } from '../schema/schema.js';
import { createNamespaceGate } from '../schema/namespace-gate.js';
import { createNamespaceStore } from '../stores/namespaces.js';
import { readRows } from '../stores/rows.js';
import { type ReconcilerReport, ReportSum } from './report.js';
import { type ListedBucket, visitBucket } from './visit.js';

export interface SweepOptions {
  /** The time, read for each bucket: a sweep may take minutes. */
  readonly now: () => EpochMs;
  /** Once aborted, no further bucket is visited. */
  readonly signal?: AbortSignal | undefined;
  /** The timeout of each request; 5 s unless given. */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 5_000;
/** Buckets that are visited concurrently. */
const MAX_CONCURRENT = 8;
/** Buckets that are read at once: the limit of one BatchGetItem. */
const PAGE = 100;
const NAMESPACES = 1_000;
/** Below and above the first character of every sort key. */
const WHOLE = { from: ' ', to: '\u007f' } as const;

interface SweptNamespace {
  readonly id: string;
  readonly name: string;
}

/**
 * Visits every bucket on the sweep list of every active namespace. A failure of one bucket is in the report; an
 * unavailable store rejects, and so does a table that needs a newer client. Several sweeps may run at once: a step
 * counts only for the sweep whose write succeeded.
 */
export async function sweep(table: Table, options: SweepOptions): Promise<ReconcilerReport> {
  const startMs = performance.now();
  const { timeoutMs = TIMEOUT_MS } = options;
  const isStopped = (): boolean => options.signal?.aborted === true;
  const sum = new ReportSum();
  const deadline = (): Deadline => deadlineIn(timeoutMs);
  await checkSchema(table, deadline());
  for await (const namespace of activeNamespaces(table, options.now, timeoutMs)) {
    if (isStopped()) break;
    sum.noteNamespace();
    for await (const page of listedBuckets(table, namespace, sum, deadline)) {
      if (isStopped()) break;
      await visitPage(table, namespace, page, sum, { ...options, timeoutMs });
    }
  }
  return sum.finish(!isStopped(), Math.round(performance.now() - startMs));
}

/** Deleted and purging namespaces have no record under their name. */
async function* activeNamespaces(table: Table, now: () => EpochMs, timeoutMs: number): AsyncGenerator<SweptNamespace> {
  const store = createNamespaceStore(table, createNamespaceGate(table));
  for (let after: string | null = null; ;) {
    const page: Awaited<ReturnType<typeof store.list>> = await store.list(
      { nowMs: now(), timeoutMs },
      { limit: NAMESPACES, after },
    );
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

/** Pages of buckets. Every shard of a bucket is on the list, and the shards of one bucket are adjacent. */
async function* listedBuckets(
  table: Table,
  { id: ns, name }: SweptNamespace,
  sum: ReportSum,
  deadline: () => Deadline,
): AsyncGenerator<readonly ListedBucket[]> {
  const range = { index: 'GSI1', partitions: [index.sweep(ns)], ...WHOLE } as const;
  let page: ListedBucket[] = [];
  let last = '';
  for await (const row of readRows(table, range, PAGE, deadline)) {
    const { PK } = readKey(row);
    const key = parseShardKey(PK);
    if (key === null || key.ns !== ns) {
      sum.noteFailure({
        namespace: name,
        bucket: PK,
        reason: 'it is on the sweep list, but is not a bucket of the namespace',
      });
      continue;
    }
    const bucket = buildBucketKey(key.entityId, key.resource);
    if (bucket === last) continue;
    last = bucket;
    page.push({ entityId: key.entityId, resource: key.resource });
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

async function visitPage(
  table: Table,
  namespace: SweptNamespace,
  page: readonly ListedBucket[],
  sum: ReportSum,
  { now, signal, timeoutMs }: SweepOptions & { readonly timeoutMs: number },
): Promise<void> {
  const keys = page.map((ref) => buildShardKey(namespace.id, { ...ref, shard: 0 }));
  const items = await readItems(table, keys, deadlineIn(timeoutMs));
  await inParallel(page.entries(), async ([at, ref]) => {
    const item = items[at];
    // The index is eventually consistent: the bucket may have been deleted.
    if (item === undefined || signal?.aborted === true) return;
    const { repairs, end } = await visitBucket({ table, ns: namespace.id, nowMs: now(), timeoutMs }, ref, item);
    sum.noteVisit(repairs, end.kind === 'busy');
    if (end.kind !== 'failed') return;
    const reason = end.error instanceof Error ? end.error.message : String(end.error);
    sum.noteFailure({ namespace: namespace.name, bucket: buildBucketKey(ref.entityId, ref.resource), reason });
  });
}

/** All workers take from one iterator. */
async function inParallel<T>(work: IterableIterator<T>, each: (one: T) => Promise<void>): Promise<void> {
  const workers = Array.from({ length: MAX_CONCURRENT }, async () => {
    for (const one of work) await each(one);
  });
  await Promise.all(workers);
}
