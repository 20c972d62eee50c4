import type { LevelAsk } from '../backend.js';
import { type Amount, amountOf, type Holder } from '../core/decide.js';
import { LimitsNotConfigured, ValidationError } from '../core/errors.js';
import { buildOwnLimitsResource } from '../core/identifiers.js';
import type { Limit } from '../core/limit.js';
import { type EpochMs, MILLI } from '../core/units.js';
import type { CachedConfig } from './config-cache.js';
import type { ResolvedOptions } from './options.js';
import type { AcquireRequest } from './request.js';

/** A bucket of per-call limits is named after them, so that its rules never change. */
const UNCHANGING = { sequence: 0, openedAtMs: 0 };

/** What to ask of each level of the chain. Refuses names that none of them has, and asks for nothing. */
export function buildLevels(
  request: AcquireRequest,
  named: readonly Amount[],
  chain: readonly CachedConfig[],
  options: ResolvedOptions,
  nowMs: EpochMs,
): readonly LevelAsk[] {
  const all = chain.map((config, at) =>
    at === 0 ? ownLevel(request, config, named) : levelOf(config, config.resolved.limits, named),
  );
  refuseUnknownNames(named, all);
  if (!all.some(asksAnything)) {
    throw new ValidationError(
      'consume',
      'an amount of at least one limit, since none has a default cost',
      request.consume,
    );
  }
  // The entity's own level counts the grant, also where only a parent has the limit.
  const levels = all.length === 1 ? all : all.filter((level, at) => at === 0 || asksAnything(level));
  return withHolders(levels, request, options, nowMs);
}

function ownLevel(request: AcquireRequest, config: CachedConfig, named: readonly Amount[]): LevelAsk {
  const { limits } = request;
  if (limits !== undefined) {
    const resource = ownLimitsResource(request.resource, limits);
    return { ...levelOf(config, limits, named), resource, version: UNCHANGING };
  }
  if (config.resolved.limits.length === 0) throw new LimitsNotConfigured(request.entityId, request.resource);
  return levelOf(config, config.resolved.limits, named);
}

function levelOf(config: CachedConfig, limits: readonly Limit[], named: readonly Amount[]): LevelAsk {
  const { entityId, resource, resolved } = config;
  const unnamed = limits.some(({ name, cost }) => cost !== undefined && amountOf(named, name) === undefined);
  const asks = unnamed ? withCosts(limits, named) : named;
  return { entityId, resource, limits, version: resolved.version, asks, holder: null };
}

function withCosts(limits: readonly Limit[], named: readonly Amount[]): readonly Amount[] {
  const costs = limits.flatMap(({ name, cost }) => (cost === undefined ? [] : [{ name, milli: cost * MILLI }]));
  return [...named, ...costs.filter(({ name }) => amountOf(named, name) === undefined)];
}

function asksAnything({ limits, asks }: LevelAsk): boolean {
  return limits.some(({ name }) => amountOf(asks, name) !== undefined);
}

function refuseUnknownNames(named: readonly Amount[], levels: readonly LevelAsk[]): void {
  for (const { name } of named) {
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
      slots: level.asks.filter(({ name }) => kindOf(level, name) === 'concurrent'),
      rates: refunds ? level.asks.filter(({ name }) => kindOf(level, name) === 'rate') : null,
      caller: options.caller,
    };
    return { ...level, holder };
  });
}

function takesSlots(level: LevelAsk): boolean {
  for (const { name, milli } of level.asks) if (milli > 0 && kindOf(level, name) === 'concurrent') return true;
  return false;
}

export function kindOf(level: { readonly limits: readonly Limit[] }, name: string): Limit['kind'] | undefined {
  for (const limit of level.limits) if (limit.name === name) return limit.kind;
  return undefined;
}
