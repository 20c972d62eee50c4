import { TwoKeyMap } from '../../core/two-key-map.js';
import type { CachedConfig } from '../config/config-cache.js';
import type { FoundPause } from '../config/find-pause.js';

/** Beyond this number, the pause that was noted first is dropped. Revoked keys that still ask are noted again. */
const MAX_ENTRIES = 10_000;

/** The key of a pause that applies to every resource: no resource has this name. */
const EVERY_RESOURCE = '#';

/**
 * The pauses that denied asks in this process. While the store does not answer, the outage policy admits none of these
 * entities, also on resources whose config was never read.
 */
export class KnownPauses {
  /** By the entity that asked, which may be a child of the paused one, and by resource. */
  readonly #found = new TwoKeyMap<FoundPause>();

  /** The generation of the config cache after this process ended a pause, by the paused entity and resource. */
  readonly #ended = new TwoKeyMap<number>();

  get isEmpty(): boolean {
    return this.#found.size === 0;
  }

  /** `entityId`: the entity that asked, or that was paused. */
  note(entityId: string, found: FoundPause): void {
    const key = found.resource ?? EVERY_RESOURCE;
    this.#found.delete(entityId, key);
    this.#found.set(entityId, key, found);
    if (this.#found.size > MAX_ENTRIES) this.#found.deleteOldest();
  }

  /** null: the pause of the whole entity. */
  find(entityId: string, resource: string | null): FoundPause | undefined {
    return this.#found.get(entityId, resource ?? EVERY_RESOURCE);
  }

  /** Called when the entity, or its bucket of the resource, was seen without a pause. */
  forget(entityId: string, resource: string | null): void {
    this.#found.delete(entityId, resource ?? EVERY_RESOURCE);
  }

  /**
   * Called when this process has ended a pause: it may have been noted for every child of the entity that asked, and cached
   * configs older than `generation` still have it.
   */
  forgetPauseOf(entityId: string, resource: string | null, generation: number): void {
    this.#ended.set(entityId, resource ?? EVERY_RESOURCE, generation);
    if (this.#ended.size > MAX_ENTRIES) this.#ended.deleteOldest();
    for (const [asked, key, found] of this.#found.entries()) {
      if (found.entityId === entityId && found.resource === resource) this.#found.delete(asked, key);
    }
  }

  /** Whether this process has ended the pause of the entry's entity, or of its bucket, since it read the entry. */
  isEndedIn({ entityId, generation }: CachedConfig, resource: string | null): boolean {
    return generation < (this.#ended.get(entityId, resource ?? EVERY_RESOURCE) ?? 0);
  }
}
