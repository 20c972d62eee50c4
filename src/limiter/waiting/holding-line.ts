import { hasBalance } from '../../core/limit-kind.js';
import { MILLI, type EpochMs } from '../../core/units.js';
import { type Context, endOfCall } from '../context.js';
import { findPause } from '../config/find-pause.js';
import { isPromise } from '../outage/guard.js';
import { buildLevels } from '../acquire/levels.js';
import { type AcquireRequest, readAmounts } from '../acquire/request.js';
import type { WaitingLine } from './waiting-line.js';

/**
 * The line that a new call must join without asking first, so that it does not take the tokens that a waiter needs. null:
 * the call asks first.
 */
export function findHoldingLine(
  context: Context,
  request: AcquireRequest,
  endMs: EpochMs,
): { readonly line: WaitingLine; readonly tokens: number } | null {
  if (context.lines.isEmpty) return null;
  let found: { readonly line: WaitingLine; readonly tokens: number } | null = null;
  for (const level of cachedLevels(context, request)) {
    for (const { name, milli } of level.asks) {
      const limit = level.limits.find((candidate) => candidate.name === name);
      // A line may be left over from before the limit was lifted.
      if (limit === undefined || !hasBalance(limit.kind)) continue;
      const tokens = Number(milli) / MILLI;
      const line = context.lines.line(level, name);
      // The store refuses at once, and with the exact reason, what no wait can grant.
      if (tokens > limit.capacity || (line !== undefined && line.aloneMs(tokens) > endMs)) return null;
      // An ask for 0 takes nothing from the waiters.
      if (tokens > 0 && line?.holdsBack(tokens) === true) found ??= { line, tokens };
    }
  }
  return found;
}

/** Empty if the config is not cached: the call then asks first. A line seldom exists longer than its config is cached. */
function cachedLevels(context: Context, request: AcquireRequest) {
  try {
    const nowMs = context.clock.now();
    const chain = context.resolver.chain(request.entityId, request.resource, nowMs, endOfCall(context, nowMs));
    if (!isPromise(chain)) {
      // The ask is denied as paused: at once, if the pause is longer than the wait.
      if (findPause(chain, nowMs) !== null) return [];
      return buildLevels({ request, named: readAmounts('consume', request.consume, 0), nowMs }, chain, context.options);
    }
    chain.catch(() => {});
  } catch {
    // The ask gets the same error and reports it.
  }
  return [];
}
