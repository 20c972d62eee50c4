// #region reconcile
import { reconcile, type ReconcilerReport, runReconciler } from 'headgate/reconciler';

/** One sweep now, then one every five minutes until the signal aborts. */
export async function reclaim(table: string, endpoint: string, stopping: AbortSignal): Promise<ReconcilerReport> {
  const report = await reconcile({ table, endpoint });
  await runReconciler({ table, endpoint, signal: stopping, onReport: console.log, onError: console.error });
  return report;
}
// #endregion reconcile
