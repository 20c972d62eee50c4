import type { Awaitable } from '../../backend.js';
import type { Change, Drift } from '../../core/manifest/compare-object.js';
import type { ManifestData } from '../../core/manifest/manifest.js';
import type { Context } from '../context.js';

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

/**
 * Limits and entities of a namespace as one document. What a manifest names it owns from then on, field by field: what it
 * names no longer is removed, what it never named stays.
 */
export class ManifestApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** What `apply` would do. Writes nothing. */
  async plan(manifest: ManifestData): Promise<ManifestPlan> {
    const { makePlan, viewOf } = await import('./manifest-plan.js');
    return viewOf(await makePlan(await this.#context(), manifest));
  }

  /** Writes the differences, one by one, each together with the note that it is owned. Gives what was done. */
  async apply(manifest: ManifestData, options: ApplyOptions = {}): Promise<ManifestPlan> {
    const { applyManifest } = await import('./manifest-apply.js');
    return applyManifest(await this.#context(), manifest, options);
  }

  /** The manifest of everything that the namespace has: planning it finds nothing to do. */
  async export(): Promise<ManifestData> {
    const { exportManifest } = await import('./manifest-export.js');
    return exportManifest(await this.#context());
  }
}
