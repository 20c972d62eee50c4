import { TwoKeyMap } from '../../core/two-key-map.js';
import type { FoundPause } from '../config/find-pause.js';

/** Beyond this number, the pause that was noted first is forgotten. Revoked keys that still ask are noted again. */
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
}
