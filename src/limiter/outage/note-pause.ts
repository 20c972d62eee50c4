import type { PausedBy } from '../../core/pause.js';
import { viewFoundPause } from '../acquire/paused.js';
import type { FoundPause } from '../config/find-pause.js';
import type { Context } from '../context.js';
import { emit } from '../events/emit.js';

/** What this process does once it has written a pause: the outage policy denies by it, and `onEvent` gets it. */
export function notePaused(context: Context, found: FoundPause): PausedBy {
  context.knownPauses.note(found.entityId, found);
  const applies = viewFoundPause(found);
  const { options, namespace } = context;
  if (options.onEvent !== null) emit(options, { type: 'pause', namespace, ...applies });
  return applies;
}

/**
 * What this process does once it has ended a pause: calls that wait for its end ask again. `isResumed`: it was running, so
 * `onEvent` gets it. Called after the config cache was outdated.
 */
export function noteResumed(
  context: Context,
  { entityId, resource }: Pick<FoundPause, 'entityId' | 'resource'>,
  isResumed: boolean,
): void {
  context.knownPauses.forgetPauseOf(entityId, resource, context.resolver.cache.generation);
  context.lines.resume();
  const { options, namespace } = context;
  if (isResumed && options.onEvent !== null) emit(options, { type: 'resume', namespace, entityId, resource });
}
