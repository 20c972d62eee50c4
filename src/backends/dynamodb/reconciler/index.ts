export { handler, type LambdaContext } from './lambda.js';
export { reconcile, type ReconcileOptions, type ReconcilerOptions, runReconciler } from './loop.js';
export type { ReconcilerFailure, ReconcilerReport, RepairCounts } from './report.js';
