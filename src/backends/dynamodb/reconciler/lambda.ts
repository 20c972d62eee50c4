import { ValidationError } from '../../../core/errors.js';
import { openReconciler, type Reconciler } from './loop.js';
import type { ReconcilerReport } from './report.js';

/** What is used of Lambda's context. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** Kept for what is under way when the time is nearly over, and for the report. */
const SPARE_MS = 10_000;
const LEAST_MS = 1_000;

/** One for each table: connections outlive an invocation. */
const reconcilers = new Map<string, Reconciler>();

/**
 * A Lambda handler for a schedule: one sweep of the table that `HEADGATE_TABLE` names, whose report it logs as one line
 * of JSON and returns. It stops before its time is over. A sweep that fails rejects, so that Lambda counts an error.
 */
export async function handler(_event: unknown, context?: LambdaContext): Promise<ReconcilerReport> {
  const remainingMs = context?.getRemainingTimeInMillis();
  const signal =
    remainingMs === undefined ? undefined : AbortSignal.timeout(Math.max(LEAST_MS, remainingMs - SPARE_MS));
  const report = await reconcilerOf(process.env['HEADGATE_TABLE'] ?? '').sweep(signal);
  process.stdout.write(`${JSON.stringify({ message: 'headgate reconciler', ...report })}\n`);
  return report;
}

function reconcilerOf(table: string): Reconciler {
  if (table === '') throw new ValidationError('HEADGATE_TABLE', 'the name of a DynamoDB table', table);
  const reconciler = reconcilers.get(table) ?? openReconciler({ table });
  reconcilers.set(table, reconciler);
  return reconciler;
}
