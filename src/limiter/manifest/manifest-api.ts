import type { Awaitable } from '../../backend.js';
import type { ManifestData } from '../../core/manifest/manifest.js';
import type { Context } from '../context.js';
import type { ApplyOptions, ManifestPlan } from './manifest-types.js';

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
