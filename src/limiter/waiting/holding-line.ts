import { MILLI, type EpochMs } from '../../core/units.js';
import { type Context, endOfCall } from '../context.js';
import { isPromise } from '../outage/guard.js';
import { buildLevels } from '../acquire/levels.js';
import { type AcquireRequest, readAmounts } from '../acquire/request.js';
import type { WaitingLine } from './waiting-line.js';

/**
 * The line that a new call has to join without asking first, so that it does not take what a waiter of one of its limits
 * waits for. null: it asks first.
 */
export function findHoldingLine(
  context: Context,
  request: AcquireRequest,
  endMs: EpochMs,
): { readonly line: WaitingLine; readonly tokens: number } | null {
  if (context.lines.isEmpty) return null;
  let found: { readonly line: WaitingLine; readonly tokens: number } | null = null;
  for (const level of levelsAtHand(context, request)) {
    for (const { name, milli } of level.asks) {
      const limit = level.limits.find((candidate) => candidate.name === name);
      // A line may be left over from before the limit was lifted.
      if (limit === undefined || limit.kind === 'unlimited') continue;
      const tokens = Number(milli) / MILLI;
      const line = context.lines.line(level, name);
      // What no wait can grant is for the store to refuse, at once and exactly.
      if (tokens > limit.capacity || (line !== undefined && line.aloneMs(tokens) > endMs)) return null;
      // What takes nothing of a limit takes nothing from its waiters.
      if (tokens > 0 && line?.holdsBack(tokens) === true) found ??= { line, tokens };
    }
  }
  return found;
}

/** None, if the config is not cached: then the ask finds out. A line is seldom longer in use than its config is cached. */
function levelsAtHand(context: Context, request: AcquireRequest) {
  try {
    const nowMs = context.clock.now();
    const chain = context.resolver.chain(request.entityId, request.resource, nowMs, endOfCall(context, nowMs));
    if (!isPromise(chain)) {
      return buildLevels({ request, named: readAmounts('consume', request.consume, 0), nowMs }, chain, context.options);
    }
    chain.catch(() => {});
  } catch {
    // The ask meets the same error, and tells it.
  }
  return [];
}
