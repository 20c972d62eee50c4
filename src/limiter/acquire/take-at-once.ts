import type { Amount } from '../../core/bucket/decide.js';
import type { ResolvedConfig } from '../../core/config/config.js';
import type { EpochMs } from '../../core/units.js';
import type { Context } from '../context.js';
import { Lease } from '../lease/lease.js';
import { PlainGrant } from '../lease/plain-grant.js';
import { refills } from '../../core/limit-kind.js';
import { kindOf } from './levels.js';
import { isHeard } from './outcome.js';
import type { AcquireRequest } from './request.js';

/**
 * The short way of an acquire, for a store whose buckets are objects of this process. Where an ask can only be granted,
 * it takes from the bucket that the last acquire of the entity and resource found, and makes the lease. No request, answer
 * or decision of the port is built. Returns null, with nothing done, wherever the ordinary way would do anything else:
 * - the breaker has counted a failure, or the limiter is closed: the guard decides;
 * - the config is not cached, due for a refresh, or has a pause: it must be read, or the ask is denied;
 * - spending cascades to a parent: several levels must grant together;
 * - the request has its own limits or a `leaseTtlMs`, is for a portable lease, or asks for slots: another bucket, or a
 *   holder;
 * - the request has a priority class or an `atMost`: a reserve may have to stay, or less is taken;
 * - a limit is a shadow: it may be short, and the ask goes on;
 * - a limit has a `warnAt`, and a listener gets whether it is near;
 * - a limit has a default cost, or a name is unknown: the amounts are not those of the request, or it is refused;
 * - the bucket cannot grant at once (see `ResidentBuckets.take`).
 */
export function takeAtOnce(
  context: Context,
  request: AcquireRequest,
  named: readonly Amount[],
  nowMs: EpochMs,
): Lease | null {
  const { resident, resolver } = context;
  if (resident === null || !context.guard.isClear) return null;
  if (request.limits !== undefined || request.leaseTtlMs !== undefined) return null;
  if (request.portable === true || request.priority !== undefined || request.atMost !== undefined) return null;
  const config = resolver.fresh(request.entityId, request.resource, nowMs);
  if (config === undefined) return null;
  const { resolved } = config;
  if (resolved.hasCosts || resolved.hasShadows || resolved.cascadesTo !== null || !areRates(resolved, named))
    return null;
  if (resolved.hasWarnings && isHeard(context.options)) return null;
  config.bucket ??= resident.find(context.namespaceId, config.entityId, config.resource) ?? null;
  if (config.bucket === null) return null;
  if (!resident.take(config.bucket, resolved.version, named, nowMs)) {
    // It may have been evicted: the next acquire looks it up again.
    config.bucket = null;
    return null;
  }
  resolver.cache.countHit();
  const lease = new Lease(context, new PlainGrant(config, named, nowMs), 'store', context.options.leaseTtlMs);
  context.firstPlainLease ??= lease;
  return lease;
}

function areRates(rules: ResolvedConfig, named: readonly Amount[]): boolean {
  for (const { name } of named) {
    const kind = kindOf(rules, name);
    if (kind === undefined || !refills(kind)) return false;
  }
  return named.length > 0;
}
