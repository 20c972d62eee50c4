import { ValidationError } from '../../../core/errors.js';
import { openReconciler, type Reconciler } from './loop.js';
import type { ReconcilerReport } from './report.js';

/** The part of Lambda's context that the handler uses. */
export interface LambdaContext {
  /** How long the function may still run. */
  getRemainingTimeInMillis(): number;
}

/** Reserved for the work in progress when the timeout is near, and for the report. */
const SPARE_MS = 10_000;
const MIN_MS = 1_000;

/** One reconciler per table: its connections outlive an invocation. */
const reconcilers = new Map<string, Reconciler>();

/**
 * A Lambda handler for a schedule. Runs one sweep of the table that `HEADGATE_TABLE` names, logs the report as one line
 * of JSON, and returns it. It stops before Lambda's timeout. A failed sweep rejects, so that Lambda counts an error.
 */
export async function handler(_event: unknown, context?: LambdaContext): Promise<ReconcilerReport> {
  const remainingMs = context?.getRemainingTimeInMillis();
  const signal = remainingMs === undefined ? undefined : AbortSignal.timeout(Math.max(MIN_MS, remainingMs - SPARE_MS));
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
