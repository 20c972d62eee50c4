import { parseDynamoDBAddress } from '../../backends/dynamodb/address.js';
import { isHeadgateError, ValidationError } from '../../core/errors.js';
import { reconcile, type ReconcileOptions, runReconciler } from '../../backends/dynamodb/reconciler/loop.js';
import type { StoreAction } from '../define-command.js';
import { describeFailure, printFailure } from '../failure.js';
import type { GlobalOptions } from '../global-options.js';
import { parseDuration } from '../parse.js';
import { renderReport, renderReportLine } from '../render/reconcile.js';
import type { Result } from '../result.js';
import type { ReconcileShape } from '../shapes.js';
import type { Terminal } from '../terminal.js';

interface ReconcileFlags extends GlobalOptions {
  readonly watch?: boolean;
  readonly every?: string;
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const SOME_FAILED_EXIT = 1;

/** Embedded stores take back what has expired whenever they look at a bucket: they need nobody for it. */
const NOTHING_TO_DO: ReconcileShape = {
  namespaces: 0,
  visited: 0,
  reclaimed: 0,
  healed: 0,
  merged: 0,
  unmarked: 0,
  busy: 0,
  failed: 0,
  failures: [],
  complete: true,
  durationMs: 0,
};

export function reconcileStore(terminal: Terminal): StoreAction<ReconcileFlags> {
  return async ({ address }, _, flags): Promise<Result<ReconcileShape | undefined>> => {
    if (flags.every !== undefined && flags.watch !== true) {
      throw new ValidationError('--every', 'given together with --watch', flags.every);
    }
    const intervalMs = flags.every === undefined ? undefined : parseDuration('--every', flags.every);
    const place = parseDynamoDBAddress(address);
    if (place === null) {
      const text = 'Nothing to do: a store in memory or in a file takes back what has expired by itself.';
      return { data: NOTHING_TO_DO, text: () => text };
    }
    const { table, region, endpoint } = place;
    const options = {
      table,
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
    };
    if (flags.watch === true) return watch(terminal, flags, options, intervalMs);
    const data = await reconcile(options);
    return { data, text: (style) => renderReport(data, style), exitCode: data.failed > 0 ? SOME_FAILED_EXIT : 0 };
  };
}

/** Prints as it goes: a line, or an object in one line, for each sweep. An interruption is its regular end. */
async function watch(
  terminal: Terminal,
  { json }: GlobalOptions,
  options: ReconcileOptions,
  intervalMs: number | undefined,
): Promise<Result<undefined>> {
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const signal of SIGNALS) process.once(signal, onSignal);
  const watching = runReconciler({
    ...options,
    signal: stop.signal,
    ...(intervalMs === undefined ? {} : { intervalMs }),
    onReport: (report) => {
      const line = json === true ? JSON.stringify(report) : renderReportLine(report, new Date(), terminal.style);
      terminal.out(`${line}\n`);
    },
    onError: (error) => {
      // What will not get better by itself ends the command.
      if (!isHeadgateError(error) || !error.retryable) throw error;
      printFailure(terminal, describeFailure(error), json === true);
    },
  });
  await watching.finally(() => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  });
  return { data: undefined, text: () => '' };
}
