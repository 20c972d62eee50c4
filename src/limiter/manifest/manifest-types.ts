import type { Awaitable } from '../../backend.js';
import type { ManifestChange, ManifestDrift } from '../../core/manifest/compare-object.js';

/** The differences between a namespace and a manifest. */
export interface ManifestPlan {
  /** In the order in which `apply` makes them. */
  readonly changes: readonly ManifestChange[];
  readonly drift: readonly ManifestDrift[];
  /** How many objects of the manifest need no change. */
  readonly unchanged: number;
}

/** Options of `manifest.apply`. */
export interface ApplyOptions {
  /** Called with the plan before the first write. If it throws, nothing is written. */
  readonly confirm?: (plan: ManifestPlan) => Awaitable<void>;
  /** Called after every change. */
  readonly onProgress?: (progress: ApplyProgress) => void;
}

/** How far `manifest.apply` is. */
export interface ApplyProgress {
  readonly change: ManifestChange;
  readonly done: number;
  readonly total: number;
}
