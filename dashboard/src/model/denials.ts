import type { Decision } from '../api/events.js';
import { LastItems } from './last-items.js';

const RECENT = 50;
/** The denials of all entities that are kept, for an entity that is opened next. */
const ALL = 500;

export interface Denial {
  readonly atMs: number;
  readonly decision: Decision;
}

/**
 * The last denials of all entities, and more of one entity: of its calls, and of the calls that its limits or its pause
 * refused.
 */
export class Denials {
  readonly #all = new LastItems<Denial>(ALL);
  #watched: { readonly entityId: string; readonly denials: LastItems<Denial> } | null = null;

  add(denial: Denial): void {
    this.#all.add(denial);
    if (concerns(denial, this.#watched?.entityId)) this.#watched?.denials.add(denial);
  }

  /**
   * Keeps those of an entity from now on, and returns them, the newest first. Begins with those that were kept of all
   * entities.
   */
  of(entityId: string): readonly Denial[] {
    if (this.#watched?.entityId !== entityId) {
      const denials = new LastItems<Denial>(RECENT);
      const known = this.#all.newest().filter((denial) => concerns(denial, entityId));
      for (const denial of known.toReversed()) denials.add(denial);
      this.#watched = { entityId, denials };
    }
    return this.#watched.denials.newest();
  }
}

function concerns({ decision: { entityId, violations, paused } }: Denial, watched: string | undefined): boolean {
  return [entityId, paused?.entityId, ...violations.map((one) => one.entityId)].includes(watched);
}
