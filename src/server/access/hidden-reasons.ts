import type { LimitStatus } from '../../core/bucket/decide.js';
import type { PausedBy } from '../../core/pause.js';
import { type AccessToken, coversEntity } from './access-token.js';
import type { ServerEvent } from '../live/event-hub.js';

/** Instead of the reason of a pause. */
const HIDDEN = '(hidden: the token does not cover the paused entity)';

/**
 * What a token may read of a pause. Tenants with a common parent learn that it is paused, because that refuses their
 * asks. Why it is paused is for its operator.
 */
function shownPause(token: AccessToken | null, paused: PausedBy): PausedBy {
  return token === null || coversEntity(token, paused.entityId) ? paused : { ...paused, reason: HIDDEN };
}

/** A status as the token may read it. */
export function shownStatus(token: AccessToken | null, status: LimitStatus): LimitStatus {
  const { paused } = status;
  return paused === undefined || token === null ? status : { ...status, paused: shownPause(token, paused) };
}

interface Reasons {
  readonly statuses: readonly LimitStatus[];
  readonly violations: readonly LimitStatus[];
  readonly paused?: PausedBy;
}

/** A denial as the token may read it. */
export function shownDenial<D extends Reasons>(token: AccessToken | null, denial: D): D {
  if (token?.entityPrefix === undefined) return denial;
  const shown = (status: LimitStatus): LimitStatus => shownStatus(token, status);
  const { paused } = denial;
  return {
    ...denial,
    statuses: denial.statuses.map(shown),
    violations: denial.violations.map(shown),
    ...(paused === undefined ? {} : { paused: shownPause(token, paused) }),
  };
}

/** An event as the token may read it: the same object if it may read all of it. */
export function shownEvent(token: AccessToken | null, event: ServerEvent): ServerEvent {
  const data = event.data as { readonly paused?: PausedBy | null };
  const { paused } = data;
  if (paused === undefined || paused === null) return event;
  const shown = shownPause(token, paused);
  return shown === paused ? event : { ...event, data: { ...data, paused: shown } };
}
