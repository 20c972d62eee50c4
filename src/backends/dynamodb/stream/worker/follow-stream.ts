import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../../clock.js';
import type { Table } from '../../client/requests.js';
import { Checkpoints } from './checkpoints.js';
import { Lane, type LaneTools } from './lane.js';
import { type BatchTools, processBatch } from '../process-batch.js';
import { assignShards } from './assign-shards.js';
import { SplitAhead } from '../split-ahead.js';
import { type StreamApi, streamDisabled } from './stream-api.js';
import { intervalsOf, type WorkerOptions } from './worker-options.js';
import { ProgressCount } from './worker-progress.js';
import { poisonOf } from '../usage/write-usage.js';

/**
 * Follows an open stream until the signal aborts, beside the work that runs `alongside`. Rejects at the end of a
 * disabled stream.
 */
export async function followStream(
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
  const { leaseMs, pollMs, discoverMs, progressMs, rollupMs } = intervalsOf(options);
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
  let isOver = false;

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
    isOver = stream.isDisabled?.() === true && shards.every(({ id }) => known.get(id)?.done === true);
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
      if (isOver) break;
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
  if (isOver) throw streamDisabled(table.name, stream.label);
}
