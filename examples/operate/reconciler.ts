// #region reconcile
import { reconcile, type ReconcilerReport, runReconciler } from 'headgate/reconciler';

type Log = (...values: readonly unknown[]) => void;

/** One sweep now, then one every five minutes until the signal aborts. `endpoint` is left out on AWS. */
export async function reclaim(on: { table: string; endpoint?: string }, stopping: AbortSignal, log: Log) {
  const first: ReconcilerReport = await reconcile(on);
  await runReconciler({ ...on, signal: stopping, onReport: log, onError: log });
  return first;
}
// #endregion reconcile
