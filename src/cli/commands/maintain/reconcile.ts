import { parseDynamoDBAddress } from '../../../backends/dynamodb/address.js';
import type { ReconcileOptions } from '../../../backends/dynamodb/reconciler/loop.js';
import { isHeadgateError, ValidationError } from '../../../core/errors.js';
import { formatCount, formatDuration, formatInstant, printable } from '../../../visualize/format.js';
import { drawFields } from '../../../visualize/table.js';
import { addExamples, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import { describeFailure, printFailure } from '../../run/failure.js';
import type { GlobalOptions } from '../../run/global-options.js';
import { parseDuration } from '../../arguments/parse.js';
import type { Result } from '../../run/result.js';
import type { Style, Terminal } from '../../terminal/terminal.js';
import { stopOnSignal } from '../../terminal/interruption.js';

/** `--json` of `reconcile`; with `--watch` one object per sweep, each on one line */
export interface ReconcileShape {
  readonly namespaces: number;
  /** Buckets that were read. */
  readonly visited: number;
  /** Expired leases that were reclaimed. */
  readonly reclaimed: number;
  /** Limits whose count of free slots was repaired. */
  readonly healed: number;
  /** Pairs of shards that were merged. */
  readonly merged: number;
  /** Buckets that were removed from the sweep list, because no lease holds slots. */
  readonly unmarked: number;
  /** Buckets that were written too often to be repaired in this sweep. */
  readonly busy: number;
  /** Buckets that could not be repaired; `failures` has the first 20. */
  readonly failed: number;
  readonly failures: readonly { readonly namespace: string; readonly bucket: string; readonly reason: string }[];
  /** false: it was interrupted. */
  readonly complete: boolean;
  readonly durationMs: number;
}

export const define: Definition = (command, context) => {
  addExamples(command, [
    'reconcile --store dynamodb://headgate-prod',
    'reconcile --watch --every 5min --store dynamodb://headgate-prod',
  ])
    .option('--watch', 'repeat until interrupted')
    .option('--every <duration>', 'with --watch: the pause between two sweeps, by default 5min')
    .action(onStore(context, reconcileStore(context.terminal)));
};

interface ReconcileFlags extends GlobalOptions {
  readonly watch?: boolean;
  readonly every?: string;
}

const SOME_FAILED_EXIT = 1;

/** Embedded stores reclaim expired leases whenever they read a bucket, and need no reconciler. */
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

function reconcileStore(terminal: Terminal): StoreAction<ReconcileFlags> {
  return async ({ address }, _, flags): Promise<Result<ReconcileShape | undefined>> => {
    if (flags.every !== undefined && flags.watch !== true) {
      throw new ValidationError('--every', 'given together with --watch', flags.every);
    }
    const intervalMs = flags.every === undefined ? undefined : parseDuration('--every', flags.every);
    const place = parseDynamoDBAddress(address);
    if (place === null) {
      const text = 'Nothing to do: a store in memory or in a file reclaims expired leases by itself.';
      return { data: NOTHING_TO_DO, text: () => text };
    }
    const { table, region, endpoint } = place;
    const options = {
      table,
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
    };
    if (flags.watch === true) return watch(terminal, flags, options, intervalMs);
    const { reconcile } = await import('../../../backends/dynamodb/reconciler/loop.js');
    const data = await reconcile(options);
    return { data, text: (style) => renderReport(data, style), exitCode: data.failed > 0 ? SOME_FAILED_EXIT : 0 };
  };
}

/** Prints a line, or a JSON object in one line, for each sweep. It ends regularly when it is interrupted. */
async function watch(
  terminal: Terminal,
  { json }: GlobalOptions,
  options: ReconcileOptions,
  intervalMs: number | undefined,
): Promise<Result<undefined>> {
  const { runReconciler } = await import('../../../backends/dynamodb/reconciler/loop.js');
  await stopOnSignal(async ({ signal }) =>
    runReconciler({
      ...options,
      signal,
      ...(intervalMs === undefined ? {} : { intervalMs }),
      onReport: (report) => {
        const line = json === true ? JSON.stringify(report) : renderReportLine(report, new Date(), terminal.style);
        terminal.out(`${line}\n`);
      },
      onError: (error) => {
        // An error that a later sweep cannot overcome ends the command.
        if (!isHeadgateError(error) || !error.retryable) throw error;
        printFailure(terminal, describeFailure(error), json === true);
      },
    }),
  );
  return { data: undefined, text: () => '' };
}

const COUNTS = [
  ['leases reclaimed', 'reclaimed'],
  ['limits repaired', 'healed'],
  ['shards merged', 'merged'],
  ['buckets unlisted', 'unmarked'],
  ['left for later', 'busy'],
  ['failed', 'failed'],
] as const;

export function renderReport(report: ReconcileShape, style: Style): string {
  const { namespaces, visited, failed, failures, durationMs } = report;
  const head = failed === 0 ? style.green('reconciled') : style.red('reconciled in part');
  const fields = drawFields([
    ['namespaces', namespaces],
    ['buckets visited', visited],
    ...COUNTS.map(([what, field]) => [what, report[field]] as const),
  ]);
  return [`${head} in ${formatDuration(durationMs)}`, fields, ...failureLines(failures, failed)].join('\n');
}

/** The report of `--watch`: one line, and one more for each failure. */
export function renderReportLine(report: ReconcileShape, at: Date, style: Style): string {
  const { failed, failures, durationMs } = report;
  const done = COUNTS.filter(([, field]) => report[field] > 0);
  const counts = [['buckets visited', 'visited'] as const, ...done].map(
    ([what, field]) => `${what} ${formatCount(report[field])}`,
  );
  const line = `${formatInstant(at)}  ${counts.join(', ')} (${formatDuration(durationMs)})`;
  return [failed === 0 ? line : style.red(line), ...failureLines(failures, failed)].join('\n');
}

function failureLines(failures: ReconcileShape['failures'], failed: number): readonly string[] {
  const lines = failures.map(({ namespace, bucket, reason }) => `  ${namespace} ${bucket}: ${reason}`);
  const more = failed - failures.length;
  return [...lines, ...(more > 0 ? [`  and ${formatCount(more)} more`] : [])].map(printable);
}
