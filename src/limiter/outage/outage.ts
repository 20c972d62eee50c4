import type { OnUnavailable } from '../../core/config/config.js';
import { type HeadgateError, isHeadgateError } from '../../core/errors.js';
import { buildLeaseId } from '../../core/identifiers.js';
import type { Ask } from '../acquire/ask.js';
import { callStore, type Context } from '../context.js';
import type { Decision } from '../acquire/decision.js';
import { DetachedAccount } from '../lease/detached-account.js';
import { Lease } from '../lease/lease.js';
import { denyByPause } from '../acquire/paused.js';
import { findPause, type FoundPause, laterFound } from '../config/find-pause.js';
import { buildLevels } from '../acquire/levels.js';
import { decisionOf, NO_ID_FREE } from '../acquire/outcome.js';

/**
 * Decides by the outage policy; `decidedBy` shows that. The policy of the call wins, then that of `open`, then that of the
 * last known system config, then `block`.
 */
export async function decideWithoutStore(context: Context, ask: Ask, error: HeadgateError): Promise<Decision> {
  const policy: OnUnavailable =
    ask.request.onUnavailable ?? context.options.onUnavailable ?? context.resolver.lastOnUnavailable ?? 'block';
  if (policy === 'block') throw error;
  const pause = findKnownPause(context, ask);
  if (pause !== null) return denyByPause(pause, ask.nowMs, 'fallback');
  switch (policy) {
    case 'allow':
      return allow(context, ask);
    case 'local':
      return decideLocally(context, ask, error);
  }
}

/** What this process knows of pauses of the entity and of its parents. No policy admits a key that was revoked. */
function findKnownPause({ resolver, knownPauses }: Context, { request, nowMs }: Ask): FoundPause | null {
  const { resource } = request;
  const chain = resolver.lastKnownChain(request.entityId, resource);
  let found = findPause(chain, nowMs, (entry, paused) => knownPauses.isEndedIn(entry, paused));
  for (const { entityId } of chain) {
    for (const known of [knownPauses.find(entityId, null), knownPauses.find(entityId, resource)]) {
      if (known !== undefined) found = laterFound(found, known, nowMs);
    }
  }
  return found;
}

function allow(context: Context, { request, named, nowMs }: Ask): Decision {
  const leaseId = buildLeaseId(nowMs, context.random());
  const account = new DetachedAccount(leaseId, request.entityId, request.resource, named);
  const lease = new Lease(context, account, 'open', context.options.leaseTtlMs);
  return { granted: true, lease, statuses: [], decidedBy: 'open' };
}

/** Decides in the memory of this process by the last known limits. Blocks if no limits are known. */
async function decideLocally(context: Context, ask: Ask, error: HeadgateError): Promise<Decision> {
  const { request, nowMs } = ask;
  // Waiters are in the lines of this namespace, whichever store decides: what a lease gives back must reach them.
  const local = { ...context.fallback(), lines: context.lines };
  const chain = context.resolver.lastKnownChain(request.entityId, request.resource);
  const leaseId = buildLeaseId(nowMs, context.random());
  try {
    const levels = buildLevels(ask, chain, context.options);
    const { atMost } = request;
    const grant = atMost === undefined ? { leaseId, levels } : { leaseId, levels, atMost };
    const outcome = await callStore(local, 'acquire', (call) => local.backend.consume(call, grant), nowMs);
    // A duplicate id is so unlikely that there is no second attempt here: the caller may ask again.
    const decision = outcome.kind === 'id-taken' ? NO_ID_FREE : outcome;
    return decisionOf(local, ask, grant, decision, 'fallback');
  } catch (refused) {
    throw isHeadgateError(refused, 'limits.missing') ? error : refused;
  }
}
