import { randomUUID } from 'node:crypto';
import { type Clock, completeClock, systemClock } from '../../../../clock.js';
import { ValidationError } from '../../../../core/errors.js';
import { deadlineIn } from '../../client/deadline.js';
import type { Table } from '../../client/requests.js';
import { openTable } from '../../table/open-table.js';
import { openTransport } from '../../client/open-transport.js';
import type { SdkOptions } from '../../client/sdk-transport.js';
import type { Archive } from '../archive/archive.js';
import { Checkpoints } from './checkpoints.js';
import type { Poison } from '../decode.js';
import { Lane, type LaneTools } from './lane.js';
import { type BatchTools, processBatch } from '../process-batch.js';
import { openSdkStream, type SdkStreamOptions } from './sdk-stream.js';
import { assignShards } from './assign-shards.js';
import { SplitAhead } from '../split-ahead.js';
import type { StreamApi } from './stream-api.js';
import { ProgressCount, type WorkerProgress } from './worker-progress.js';
import { poisonOf } from '../usage/write-usage.js';

/** A part of the stream that DynamoDB removed before a worker read it. */
export interface TrimmedStream {
  readonly shardId: string;
  /** The last record that was counted; null: none of this shard. */
  readonly sequenceNumber: string | null;
}

export interface WorkerOptions extends SdkOptions, SdkStreamOptions {
  /** The table's name. */
  readonly table: string;
  /** Stores audit records that expire. Without it, they are not archived. */
  readonly archive?: Archive;
  /** Once aborted, the work in progress is finished, and the worker releases its shards. */
  readonly signal?: AbortSignal;
  /** Unless given: the system's clock, corrected by the store's time. */
  readonly clock?: Clock;
  /** The unique name of this worker: random unless given. */
  readonly owner?: string;
  /**
   * How long a worker keeps its shards without renewing: 30 seconds unless given, at least one. It renews three times
   * as often, and each renewal is a change in the stream that it reads.
   */
  readonly leaseMs?: number;
  /** The pause at the end of a shard before the next read: half a second unless given. */
  readonly pollMs?: number;
  /** How often it looks for shards: every 10 seconds unless given. */
  readonly discoverMs?: number;
  /**
   * The shortest interval between writes of daily and monthly usage; hourly usage is written with each batch. A minute
   * unless given.
   */
  readonly rollupMs?: number;
  /** How often progress is reported: every 5 seconds unless given. */
  readonly progressMs?: number;
  readonly onProgress?: (progress: WorkerProgress) => void;
  /** Called for skipped records: they cannot be decoded, or DynamoDB permanently refuses to count them. */
  readonly onPoison?: (poison: Poison) => void;
  /** Called for changes that can no longer be counted: `rebuildUsage` repairs the totals. */
  readonly onTrimmed?: (trimmed: TrimmedStream) => void;
  /** Called for errors that are retried. */
  readonly onError?: (error: unknown, where: string) => void;
  /** Work that runs as long as the worker, such as the reconciler. If it rejects, the worker stops and rejects too. */
  readonly alongside?: readonly ((signal: AbortSignal) => Promise<unknown>)[];
}

const DEFAULTS = { leaseMs: 30_000, pollMs: 500, discoverMs: 10_000, progressMs: 5_000, rollupMs: 60_000 };
const DAY_MS = 86_400_000;
const RANGES_MS: Readonly<Record<keyof typeof DEFAULTS, readonly [least: number, most: number]>> = {
  leaseMs: [1_000, DAY_MS],
  pollMs: [1, DAY_MS],
  discoverMs: [1, DAY_MS],
  progressMs: [1, DAY_MS],
  // The checkpoint lags by this interval, and the stream keeps records for a day.
  rollupMs: [1, 3_600_000],
};
const OPEN_MS = 10_000;

/**
 * Follows a table's stream until the signal aborts: counts usage, archives audit records that expire, splits busy
 * buckets. Any number of workers may run: they share the shards of the stream and count nothing twice. Rejects if the
 * table or its stream cannot be opened; later failures are reported and retried.
 */
export async function runWorker(options: WorkerOptions): Promise<void> {
  checkOptions(options);
  const transport = openTransport(options);
  const table: Table = { name: options.table, transport, random: Math.random };
  const clock = completeClock(options.clock ?? { now: () => transport.storeTimeMs() ?? systemClock.now() });
  let stream: StreamApi | null = null;
  try {
    await options.archive?.check?.();
    await openTable(table, deadlineIn(OPEN_MS));
    stream = await openSdkStream(table, options);
    await runOn(table, stream, clock, options);
  } finally {
    stream?.close();
    transport.close();
  }
}

function checkOptions(options: WorkerOptions): void {
  if (typeof options.table !== 'string' || options.table === '') {
    throw new ValidationError('table', 'the name of a DynamoDB table', options.table);
  }
  for (const name of ['leaseMs', 'pollMs', 'discoverMs', 'progressMs', 'rollupMs'] as const) {
    const ms = options[name] ?? DEFAULTS[name];
    const [least, most] = RANGES_MS[name];
    if (!Number.isFinite(ms) || ms < least || ms > most) {
      throw new ValidationError(name, `a number of milliseconds from ${least} to ${most}`, ms);
    }
  }
}

/** The worker on an open stream. */
export async function runOn(
  table: Table,
  stream: StreamApi,
  clock: Required<Clock>,
  options: Omit<WorkerOptions, 'table'>,
): Promise<void> {
  const stop = new AbortController();
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal]);
  const failed: unknown[] = [];
  const alongside = (options.alongside ?? []).map(async (work) => {
    try {
      await work(signal);
    } catch (error) {
      failed.push(error);
      stop.abort();
    }
  });
  try {
    await followShards(table, stream, clock, options, signal);
  } finally {
    stop.abort();
    await Promise.all(alongside);
  }
  if (failed.length > 0) throw failed[0];
}

async function followShards(
  table: Table,
  stream: StreamApi,
  clock: Required<Clock>,
  options: Omit<WorkerOptions, 'table'>,
  signal: AbortSignal,
): Promise<void> {
  const { leaseMs, pollMs, discoverMs, progressMs, rollupMs } = { ...DEFAULTS, ...definedOf(options) };
  const me = options.owner ?? randomUUID();
  const checkpoints = new Checkpoints(table, stream.label, me, leaseMs);
  const progress = new ProgressCount(clock.now());
  const onError = options.onError ?? (() => {});
  const onTrimmed = (shardId: string, sequenceNumber: string | null): void =>
    options.onTrimmed?.({ shardId, sequenceNumber });
  const onPoison = options.onPoison ?? (() => {});
  const batchTools: BatchTools = {
    table,
    archive: options.archive ?? null,
    splitAhead: new SplitAhead(table),
    now: () => clock.now(),
    onPoison,
    onError,
  };
  const tools: LaneTools = {
    stream,
    checkpoints,
    clock,
    leaseMs,
    pollMs,
    rollupMs,
    process: async (records, deferred) => processBatch(batchTools, stream.label, records, deferred),
    writeDeferred: async (deferred) =>
      deferred.write(table, (refused) => {
        onPoison(poisonOf(refused));
        progress.skipped(refused.parts.length);
      }),
    onRead: (shardId, records, result, lagMs) => progress.note(shardId, records, result, lagMs),
    onTrimmed,
    onError,
  };
  const lanes = new Map<string, Promise<void>>();
  // Aborted when a lane ends: its shard may have children.
  let wake = new AbortController();

  const discover = async (): Promise<void> => {
    const [shards, known] = await Promise.all([stream.listShards(), checkpoints.readAll()]);
    const { claims, lost } = assignShards(shards, known, { me, reading: new Set(lanes.keys()) }, clock.now());
    for (const { shardId, sequenceNumber } of lost) {
      const mine = await checkpoints.claim(shardId, known.get(shardId), clock.now());
      if (mine === null) continue;
      onTrimmed(shardId, sequenceNumber);
      await checkpoints.leave(shardId, null, true, clock.now());
    }
    for (const { id } of claims) {
      const checkpoint = await checkpoints.claim(id, known.get(id), clock.now());
      if (checkpoint !== null) open(new Lane(tools, checkpoint));
    }
    progress.discovered();
  };
  const open = (lane: Lane): void => {
    progress.opened(lane.shardId);
    const follow = async (): Promise<void> => {
      await lane.run(signal);
      lanes.delete(lane.shardId);
      progress.closed(lane.shardId);
      wake.abort();
    };
    lanes.set(lane.shardId, follow());
  };

  let discoverAtMs = clock.now();
  let reportAtMs = clock.now() + progressMs;
  while (!signal.aborted) {
    if (wake.signal.aborted || clock.now() >= discoverAtMs) {
      wake = new AbortController();
      discoverAtMs = clock.now() + discoverMs;
      await discover().catch((error: unknown) => onError(error, 'looking for shards'));
    }
    if (clock.now() >= reportAtMs) {
      reportAtMs = clock.now() + progressMs;
      options.onProgress?.(progress.report(clock.now()));
    }
    const waitMs = Math.max(1, Math.min(discoverAtMs, reportAtMs) - clock.now());
    await clock.sleep(waitMs, AbortSignal.any([signal, wake.signal])).catch(() => {});
  }
  await Promise.all(lanes.values());
  options.onProgress?.(progress.report(clock.now()));
}

/** An option that is undefined counts as not given. */
function definedOf(options: Omit<WorkerOptions, 'table'>): Partial<typeof DEFAULTS> {
  const named = Object.entries(options).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  return Object.fromEntries(named);
}
