import type { Awaitable } from '../../backend.js';
import type { Change, Drift } from '../../core/manifest/compare-object.js';

/** How a namespace differs from what a manifest wants of it. */
export interface ManifestPlan {
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  readonly drift: readonly Drift[];
  /** How many objects of the manifest are as it wants them. */
  readonly unchanged: number;
}

export interface ApplyOptions {
  /** Sees the plan before anything is written. If it throws, nothing is. */
  readonly confirm?: (plan: ManifestPlan) => Awaitable<void>;
  /** Hears of every change that was made. */
  readonly onProgress?: (progress: ApplyProgress) => void;
}

export interface ApplyProgress {
  readonly change: Change;
  readonly done: number;
  readonly total: number;
}
