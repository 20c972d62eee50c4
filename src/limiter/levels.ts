import type { LevelAsk } from '../backend.js';
import type { Amount, Holder } from '../core/decide.js';
import { LimitsNotConfigured, ValidationError } from '../core/errors.js';
import { buildOwnLimitsResource } from '../core/identifiers.js';
import type { Limit } from '../core/limit.js';
import { type EpochMs, MILLI } from '../core/units.js';
import type { CachedConfig } from './config-cache.js';
import type { ResolvedOptions } from './options.js';
import type { AcquireRequest, Amounts } from './request.js';

/** A bucket of per-call limits is named after them, so that its rules never change. */
const UNCHANGING = { sequence: 0, openedAtMs: 0 };

const NO_AMOUNTS: Amounts = {};

/** What to ask of each level of the chain. Refuses names that none of them has, and asks for nothing. */
export function buildLevels(
  request: AcquireRequest,
  chain: readonly CachedConfig[],
  options: ResolvedOptions,
  nowMs: EpochMs,
): readonly LevelAsk[] {
  const consume = request.consume ?? NO_AMOUNTS;
  const levels: LevelAsk[] = [];
  let anyAsk = false;
  for (const config of chain) {
    const own = levels.length === 0;
    const { limits } = own && request.limits !== undefined ? request : config.resolved;
    if (limits === undefined || limits.length === 0) {
      if (own) throw new LimitsNotConfigured(request.entityId, request.resource);
      continue;
    }
    const asks = asksOf(limits, consume);
    if (asks.length > 0) anyAsk = true;
    else if (!own) continue;
    levels.push({
      entityId: config.entityId,
      resource: own && request.limits !== undefined ? ownLimitsResource(request.resource, limits) : request.resource,
      limits,
      version: own && request.limits !== undefined ? UNCHANGING : config.resolved.version,
      asks,
      holder: null,
    });
  }
  refuseUnknownNames(consume, levels);
  if (!anyAsk) {
    throw new ValidationError('consume', 'an amount of at least one limit, since none has a default cost', consume);
  }
  return withHolders(levels, request, options, nowMs);
}

function asksOf(limits: readonly Limit[], consume: Amounts): Amount[] {
  const asks: Amount[] = [];
  for (const { name, cost } of limits) {
    const amount = Object.hasOwn(consume, name) ? consume[name] : cost;
    if (amount !== undefined) asks.push({ name, milli: amount * MILLI });
  }
  return asks;
}

function refuseUnknownNames(consume: Amounts, levels: readonly LevelAsk[]): void {
  for (const name of Object.keys(consume)) {
    if (levels.some(({ limits }) => limits.some((limit) => limit.name === name))) continue;
    const known = new Set(levels.flatMap(({ limits }) => limits.map((limit) => limit.name)));
    throw new ValidationError(`consume.${name}`, `the name of a limit (${[...known].join(', ')})`, name);
  }
}

function ownLimitsResource(resource: string, limits: readonly Limit[]): string {
  const rules = limits.map(({ name, capacity, refillAmount, refillPeriodMs }) =>
    [name, capacity, refillAmount, refillPeriodMs].join(':'),
  );
  return buildOwnLimitsResource(resource, rules.toSorted().join(' '));
}

/**
 * A level keeps a holder if it gives away slots. The entity's own also does if the caller asked for a lease that
 * expires. Where an expiry gives rates back, every level of such a lease does, with its amounts.
 */
function withHolders(
  levels: readonly LevelAsk[],
  request: AcquireRequest,
  options: ResolvedOptions,
  nowMs: EpochMs,
): readonly LevelAsk[] {
  const asked = request.leaseTtlMs !== undefined;
  if (!asked && !levels.some(takesSlots)) return levels;
  const refunds = options.onExpiry === 'refund';
  const expiresAtMs = nowMs + (request.leaseTtlMs ?? options.leaseTtlMs);
  return levels.map((level, at) => {
    if (!(refunds || takesSlots(level) || (asked && at === 0))) return level;
    const holder: Holder = {
      expiresAtMs,
      acquiredAtMs: nowMs,
      slots: level.asks.filter(({ name }) => isConcurrent(level, name)),
      rates: refunds ? level.asks.filter(({ name }) => !isConcurrent(level, name)) : null,
      caller: options.caller,
    };
    return { ...level, holder };
  });
}

function takesSlots(level: LevelAsk): boolean {
  for (const { name, milli } of level.asks) if (milli > 0 && isConcurrent(level, name)) return true;
  return false;
}

export function isConcurrent(level: { readonly limits: readonly Limit[] }, name: string): boolean {
  for (const limit of level.limits) if (limit.name === name) return limit.refillPeriodMs === 0;
  return false;
}
