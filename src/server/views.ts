import * as v from 'valibot';
import type { LimitStatus } from '../core/bucket/decide.js';
import type { PausedBy, PauseView } from '../core/pause.js';
import type { Lease } from '../limiter/lease/lease.js';
import { finite, limitView, viewLimit } from './schemas.js';

/** The state of one limit of one level. */
export const statusView = v.object({
  entityId: v.string(),
  resource: v.string(),
  limit: limitView,
  available: v.pipe(v.nullable(v.number()), v.description('What is left after the decision; negative in debt.')),
  requested: v.number(),
  reserved: v.optional(v.pipe(v.number(), v.description('What had to stay for asks of higher priority.'))),
  shadow: v.optional(v.pipe(v.literal(true), v.description('The limit refuses nothing.'))),
  exceeded: v.boolean(),
  retryAfterMs: v.pipe(v.nullable(v.number()), v.description('0 if not exceeded; null if waiting does not help.')),
});

export function viewStatus(status: LimitStatus): v.InferOutput<typeof statusView> {
  const { limit, available, ...rest } = status;
  return { ...rest, limit: viewLimit(limit), available: finite(available) };
}

/** A pause that applies to an entity, or to its bucket of one resource. */
export const pauseView = v.object({
  entityId: v.string(),
  resource: v.pipe(v.nullable(v.string()), v.description('null: the entity is paused on every resource.')),
  until: v.pipe(v.nullable(v.string()), v.description('null: until it is resumed.')),
  reason: v.string(),
});

export function viewPausedBy({ until, ...pause }: PausedBy): v.InferOutput<typeof pauseView> {
  return { ...pause, until: until?.toISOString() ?? null };
}

/** A pause that is stored with an entity or a bucket. */
export const storedPauseView = v.pipe(
  v.object({ until: v.pipe(v.nullable(v.string()), v.description('null: until it is resumed.')), reason: v.string() }),
  v.description('The stored pause, which may have ended. Left out if there is none.'),
);

export function viewStoredPause(pause: PauseView | undefined) {
  return pause === undefined ? {} : { paused: { until: pause.until?.toISOString() ?? null, reason: pause.reason } };
}

/** A lease, with the token that continues it. */
export const leaseView = v.object({
  id: v.string(),
  token: v.pipe(
    v.nullable(v.string()),
    v.description('null: the lease has no holder, so there is nothing to continue.'),
  ),
  expiresAt: v.nullable(v.string()),
  consumed: v.record(v.string(), v.number()),
});

/** The token hands the lease over to the client: the server neither ends nor extends it. */
export async function viewLease(lease: Lease): Promise<v.InferOutput<typeof leaseView>> {
  const isHeld = lease.expiresAt !== null && lease.decidedBy === 'store';
  return {
    id: lease.id,
    token: isHeld ? await lease.token() : null,
    expiresAt: lease.expiresAt?.toISOString() ?? null,
    consumed: { ...lease.consumed },
  };
}
