import { type Clock, completeClock, systemClock } from '../../../clock.js';
import { ValidationError } from '../../../core/errors.js';
import { deadlineIn } from '../../../machine-time.js';
import type { Table } from '../client/requests.js';
import { openTable } from '../schema/open-table.js';
import { openTransport } from '../client/open-transport.js';
import type { SdkOptions } from '../client/sdk-transport.js';
import type { ReconcilerReport } from './report.js';
import { sweep } from './sweep.js';

/** Options of `reconcile`. */
export interface ReconcileOptions extends SdkOptions {
  /** The table's name. */
  readonly table: string;
  /** Once aborted, the work in progress is finished and no more is started. */
  readonly signal?: AbortSignal;
  /** The source of time. Default: the system's clock, corrected by the store's time. */
  readonly clock?: Clock;
}

/** Options of `runReconciler`. */
export interface ReconcilerOptions extends ReconcileOptions {
  /** The pause between two sweeps. Default: 300,000. */
  readonly intervalMs?: number;
  /** Called after each sweep with its report. */
  readonly onReport?: (report: ReconcilerReport) => void;
  /** Called when a sweep fails; the next sweep runs after the pause. Without it, `runReconciler` rejects. */
  readonly onError?: (error: unknown) => void;
}

const INTERVAL_MS = 300_000;
const OPEN_MS = 10_000;

/** Runs one sweep over all active namespaces of a table. */
export async function reconcile(options: ReconcileOptions): Promise<ReconcilerReport> {
  const reconciler = openReconciler(options);
  try {
    return await reconciler.sweep(options.signal);
  } finally {
    reconciler.close();
  }
}

/**
 * Sweeps a table now and after each pause, and resolves when the signal aborts. A sweep reclaims expired holders,
 * repairs slot counts and merges cold shards. Any number may run at once: none counts twice what another one did.
 */
export async function runReconciler(options: ReconcilerOptions): Promise<void> {
  const { signal, intervalMs = INTERVAL_MS, onReport, onError } = options;
  if (!Number.isFinite(intervalMs) || intervalMs < 1) {
    throw new ValidationError('intervalMs', 'a number of milliseconds of at least 1', intervalMs);
  }
  const clock = completeClock(options.clock ?? systemClock);
  const reconciler = openReconciler(options);
  try {
    for (;;) {
      if (signal?.aborted === true) return;
      try {
        const report = await reconciler.sweep(signal);
        onReport?.(report);
      } catch (error) {
        if (onError === undefined) throw error;
        onError(error);
      }
      await untilNext(clock, intervalMs, signal);
    }
  } finally {
    reconciler.close();
  }
}

async function untilNext(clock: Required<Clock>, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}

/** Connections that several sweeps share. */
export interface Reconciler {
  sweep(signal?: AbortSignal): Promise<ReconcilerReport>;
  close(): void;
}

export function openReconciler(options: Omit<ReconcileOptions, 'signal'>): Reconciler {
  const { table: name, clock } = options;
  if (typeof name !== 'string' || name === '') {
    throw new ValidationError('table', 'the name of a DynamoDB table', name);
  }
  const transport = openTransport(options);
  const table: Table = { name, transport, random: Math.random };
  // A machine whose clock is ahead must not reclaim holders that have not expired. Opening the table reads the store's
  // time before the first write.
  const now = clock === undefined ? () => transport.storeTimeMs() ?? systemClock.now() : () => clock.now();
  return {
    async sweep(signal) {
      await openTable(table, deadlineIn(OPEN_MS));
      return sweep(table, { now, signal });
    },
    close: () => transport.close(),
  };
}
