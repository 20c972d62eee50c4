import { isRunning, type Pause } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import type { CachedConfig } from './config-cache.js';

/** A running pause, and the entity or bucket that has it. */
export interface FoundPause {
  readonly entityId: string;
  /** null: the entity is paused on every resource. */
  readonly resource: string | null;
  readonly pause: Pause;
}

/** Whether a pause has ended since an entry was read: of the entity, or with a resource, of its bucket. */
type IsEnded = (entry: CachedConfig, resource: string | null) => boolean;

const NOT_ENDED: IsEnded = () => false;

/** The running pause with the latest end among the levels of a chain; null: none is paused as far as the config says. */
export function findPause(
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
  isEnded: IsEnded = NOT_ENDED,
): FoundPause | null {
  let found: FoundPause | null = null;
  for (const entry of chain) {
    const { entityId, resource, resolved } = entry;
    if (!resolved.hasPause) continue;
    const { entity, bucketPause } = resolved.read;
    if (!isEnded(entry, null)) found = laterFound(found, { entityId, resource: null, pause: entity?.pause }, nowMs);
    if (!isEnded(entry, resource)) found = laterFound(found, { entityId, resource, pause: bucketPause }, nowMs);
  }
  return found;
}

/** The pause that ends later, of those that run; the first of two that end together. */
export function laterFound(
  found: FoundPause | null,
  other: Omit<FoundPause, 'pause'> & { readonly pause: Pause | undefined },
  nowMs: EpochMs,
): FoundPause | null {
  const { entityId, resource, pause } = other;
  if (!isRunning(pause, nowMs) || (found !== null && found.pause.endMs >= pause.endMs)) return found;
  return { entityId, resource, pause };
}
