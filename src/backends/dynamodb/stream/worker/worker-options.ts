import type { Clock } from '../../../../clock.js';
import { ValidationError } from '../../../../core/errors.js';
import type { SdkOptions } from '../../client/sdk-transport.js';
import type { Archive } from '../archive/archive.js';
import type { Poison } from '../decode.js';
import type { SdkStreamOptions } from './sdk-stream.js';
import type { WorkerProgress } from './worker-progress.js';

/** A part of the stream that DynamoDB removed before a worker read it. */
export interface TrimmedStream {
  readonly shardId: string;
  /** The last record that was counted; null: none of this shard. */
  readonly sequenceNumber: string | null;
}

/** Options of `runWorker`. */
export interface WorkerOptions extends SdkOptions, SdkStreamOptions {
  /** The table's name. */
  readonly table: string;
  /** Stores audit records that expire. Without it, they are not archived. */
  readonly archive?: Archive;
  /** Once aborted, the work in progress is finished, and the worker releases its shards. */
  readonly signal?: AbortSignal;
  /** The source of time. Default: the system's clock, corrected by the store's time. */
  readonly clock?: Clock;
  /** The unique name of this worker. Default: a random name. */
  readonly owner?: string;
  /**
   * How long a worker keeps its shards without renewing. At least 1,000. Default: 30,000. It renews three times
   * as often, and each renewal is a change in the stream that it reads.
   */
  readonly leaseMs?: number;
  /** The pause at the end of a shard before the next read. Default: 500. */
  readonly pollMs?: number;
  /** How often it looks for shards. Default: 10,000. */
  readonly discoverMs?: number;
  /**
   * The shortest interval between writes of daily and monthly usage; hourly usage is written with each batch. Default:
   * 60,000.
   */
  readonly rollupMs?: number;
  /** How often progress is reported. Default: 5,000. */
  readonly progressMs?: number;
  /** Called with the progress of this worker. */
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

export function checkWorkerOptions(options: WorkerOptions): void {
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

/** The intervals of a worker. An option that is undefined counts as not given. */
export function intervalsOf(options: Omit<WorkerOptions, 'table'>): typeof DEFAULTS {
  const given = Object.entries(options).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}
