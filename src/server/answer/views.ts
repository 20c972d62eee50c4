import * as v from 'valibot';
import type { Awaitable } from '../../backend.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import type { PausedBy, PauseView } from '../../core/pause.js';
import type { Lease } from '../../limiter/lease/lease.js';
import type { FallbackLeases } from './fallback-leases.js';
import { finite, limitView, viewLimit } from '../request/schemas.js';

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

/** The state of one limit of one level. */
export const statusView = v.object({
  entityId: v.string(),
  resource: v.string(),
  limit: limitView,
  available: v.pipe(v.nullable(v.number()), v.description('What is left after the decision; negative in debt.')),
  requested: v.number(),
  reserved: v.optional(v.pipe(v.number(), v.description('What had to stay for asks of higher priority.'))),
  shadow: v.optional(v.pipe(v.literal(true), v.description('The limit refuses nothing.'))),
  near: v.optional(v.pipe(v.literal(true), v.description('At least the share `warnAt` of the limit is used.'))),
  exceeded: v.boolean(),
  retryAfterMs: v.pipe(v.nullable(v.number()), v.description('0 if not exceeded; null if waiting does not help.')),
  paused: v.optional(pauseView),
});

type StatusView = v.InferOutput<typeof statusView>;

/** A status with a field that the view lacks is no argument of `viewStatus`: the compiler finds a field that is not shown. */
type Shown = Exclude<keyof LimitStatus, keyof StatusView> extends never ? LimitStatus : never;

/** Each field is named: a copy of the rest of an object takes several times as long, and each answer has some of these. */
export function viewStatus(status: Shown): StatusView {
  const { entityId, resource, limit, available, requested, exceeded, retryAfterMs, reserved, shadow, near, paused } =
    status;
  const view: StatusView = {
    entityId,
    resource,
    limit: viewLimit(limit),
    available: finite(available),
    requested,
    exceeded,
    retryAfterMs,
  };
  if (reserved !== undefined) view.reserved = reserved;
  if (shadow !== undefined) view.shadow = shadow;
  if (near !== undefined) view.near = near;
  if (paused !== undefined) view.paused = viewPausedBy(paused);
  return view;
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

export type LeaseBody = v.InferOutput<typeof leaseView>;

/** The namespace of a lease, and where those of the policy `local` are. */
interface LeaseOwner {
  readonly fallbackLeases: FallbackLeases;
  readonly namespace: string;
}

/** The token hands the lease over to the client: the server neither ends nor extends it. */
export function viewLease(lease: Lease, { fallbackLeases, namespace }: LeaseOwner): Awaitable<LeaseBody> {
  if (lease.expiresAt === null) return viewWithToken(lease, null);
  const token = lease.decidedBy === 'store' ? lease.token() : fallbackLeases.add(lease, namespace);
  return token.then((text) => viewWithToken(lease, text));
}

export function viewWithToken({ id, consumed, expiresAt }: Lease, token: string | null): LeaseBody {
  return { id, token, expiresAt: expiresAt?.toISOString() ?? null, consumed };
}
