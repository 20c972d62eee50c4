import { askOf } from '../../core/bucket/decide.js';
import { hasBalance } from '../../core/limit-kind.js';
import type { Limit } from '../../core/limit.js';
import { shareOfCapacity } from '../../core/limit-options.js';
import { MILLI, type EpochMs } from '../../core/units.js';
import { type Context, endOfCall } from '../context.js';
import { findPause } from '../config/find-pause.js';
import { isPromise } from '../outage/guard.js';
import { buildLevels } from '../acquire/levels.js';
import { type AcquireRequest, readAmounts } from '../acquire/request.js';
import type { WaitingLine } from './waiting-line.js';

/** What a new call needs from one limit. */
interface Need {
  readonly tokens: number;
  /** What must stay for asks of higher priority. */
  readonly reserved: number;
}

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
  let found: { readonly holding: WaitingLine; readonly limit: Limit; readonly need: Need } | null = null;
  for (const level of cachedLevels(context, request)) {
    for (const limit of level.limits) {
      const ask = askOf(level.asks, limit.name);
      // A line may be left over from before the limit was lifted or became a shadow.
      if (ask === undefined || ask.shadow === true || !hasBalance(limit.kind)) continue;
      const reserved = ask.reserve === undefined ? 0 : shareOfCapacity(limit, ask.reserve) / MILLI;
      // An ask that may be cut waits for one token.
      const tokens = ask.atMost === true ? Math.min(1, Number(ask.milli) / MILLI) : Number(ask.milli) / MILLI;
      const need = { tokens, reserved };
      const lines = context.lines.of(level, limit.name);
      // The store refuses at once, and with the exact reason, what no wait can grant.
      if (need.tokens + reserved > limit.capacity || lines.some((line) => isTooLate(line, need, endMs))) return null;
      const holding = lines.find((line) => holdsBack(line, need));
      if (holding !== undefined) found ??= { holding, limit, need };
    }
  }
  if (found === null) return null;
  const { holding, limit, need } = found;
  const line = context.lines.open(request, {
    ...holding.outlook.lastRefusal,
    limit,
    requested: need.tokens,
    reserved: need.reserved,
  });
  return { line, tokens: need.tokens };
}

function isTooLate(line: WaitingLine, { tokens, reserved }: Need, endMs: EpochMs): boolean {
  const { outlook } = line;
  // When the limit should have the tokens if the line did not exist.
  return outlook.forecast.askMs(tokens + reserved - outlook.reserved) > endMs;
}

/** Waiters with less reserve come first. Those with the same reserve follow the rules of one line. */
function holdsBack(line: WaitingLine, { tokens, reserved }: Need): boolean {
  // An ask for 0 takes nothing from the waiters.
  if (tokens === 0 || line.head === null || line.outlook.reserved > reserved) return false;
  return line.outlook.reserved < reserved || line.holdsBack(tokens);
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
