import type { Awaitable } from '../../backend.js';
import type { ManifestData } from '../../core/manifest/manifest.js';
import type { Context } from '../context.js';
import type { ApplyOptions, ManifestPlan } from './manifest-types.js';

/**
 * Limits and entities of a namespace as one document. Applying a manifest makes it the owner of each field that it names.
 * A field that a later version no longer names is removed; a field that it never named stays.
 */
export class ManifestApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** The changes that `apply` would make. Writes nothing. */
  async plan(manifest: ManifestData): Promise<ManifestPlan> {
    const { makePlan, viewOf } = await import('./manifest-plan.js');
    return viewOf(await makePlan(await this.#context(), manifest));
  }

  /** Writes the differences one by one, each together with its mark. Returns the changes that were made. */
  async apply(manifest: ManifestData, options: ApplyOptions = {}): Promise<ManifestPlan> {
    const { applyManifest } = await import('./manifest-apply.js');
    return applyManifest(await this.#context(), manifest, options);
  }

  /** A manifest of the whole namespace. Planning it finds no changes. */
  async export(): Promise<ManifestData> {
    const { exportManifest } = await import('./manifest-export.js');
    return exportManifest(await this.#context());
  }
}
