import { formatCount, formatDuration, formatInstant, printable } from '../../visualize/format.js';
import { drawFields } from '../../visualize/table.js';
import type { ReconcileShape } from '../shapes.js';
import type { Style } from '../terminal.js';

const COUNTS = [
  ['leases taken back', 'reclaimed'],
  ['limits healed', 'healed'],
  ['shards merged', 'merged'],
  ['buckets off the list', 'unmarked'],
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

/** For those who watch: what there is to say, in one line unless something failed. */
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
