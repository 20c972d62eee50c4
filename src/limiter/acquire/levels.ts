import type { LevelAsk } from '../../backend.js';
import { type Amount, amountOf, type AskedAmount, type Holder } from '../../core/bucket/decide.js';
import { LimitsNotConfigured, ValidationError } from '../../core/errors.js';
import { buildOwnLimitsResource } from '../../core/identifiers.js';
import { hasBalance, holdsSlots, isConsumed } from '../../core/limit-kind.js';
import type { Limit } from '../../core/limit.js';
import { type EpochMs, MILLI } from '../../core/units.js';
import type { Ask } from './ask.js';
import type { CachedConfig } from '../config/config-cache.js';
import type { ResolvedOptions } from '../options.js';
import { refuseUnknownPriority, withReserves } from './priority.js';
import type { AcquireRequest } from './request.js';

/** The key of a bucket of per-call limits contains a hash of them, so its rules never change. */
const UNCHANGING = { sequence: 0, openedAtMs: 0 };

/** The asks for each level of the chain. Refuses names that no level has, and a request that asks for nothing. */
export function buildLevels(
  { request, named, nowMs }: Omit<Ask, 'wants'>,
  chain: readonly CachedConfig[],
  options: ResolvedOptions,
): readonly LevelAsk[] {
  const [own, ...parents] = chain;
  if (own === undefined) throw new LimitsNotConfigured(request.entityId, request.resource);
  const all = [ownLevel(request, own, named)];
  for (const parent of parents) all.push(levelOf(parent, parent.resolved.limits, named, all[0]?.asks));
  const hasOptions =
    request.limits !== undefined || chain.some(({ resolved }) => resolved.hasShadows || resolved.hasWarnings);
  refuseUnknownNames(named, all);
  if (request.priority !== undefined) refuseUnknownPriority(request.priority, all);
  if (!all.some(asksAnything)) {
    throw new ValidationError(
      'consume',
      'an amount of at least one limit, since none has a default cost',
      request.consume,
    );
  }
  // The entity's own level is always included, because it counts the grant even if only a parent has the limit.
  const asked = all.length === 1 ? all : all.filter((level, at) => at === 0 || asksAnything(level));
  const asking =
    asked.length < all.length && holdsEverywhere(request, asked, options) ? all.flatMap(withHolderOnly) : asked;
  const reserved = request.priority === undefined ? asking : withReserves(asking, request.priority);
  const optioned = hasOptions ? reserved.map((level) => withOptions(level, chain)) : reserved;
  const { atMost } = request;
  const levels = atMost === undefined ? optioned : optioned.map((level) => withCut(level, atMost));
  // Most leases need no holder. This check avoids the work in `withHolders`.
  const mayHold =
    request.leaseTtlMs !== undefined ||
    request.limits !== undefined ||
    request.portable === true ||
    chain.some(hasSlots);
  return mayHold ? withHolders(levels, request, options, nowMs) : levels;
}

/** The parents with rates that are not asked, in a form that asks for nothing. */
export function unaskedParents(chain: readonly CachedConfig[], levels: readonly LevelAsk[]): readonly LevelAsk[] {
  if (chain.length === levels.length) return [];
  return chain
    .filter(({ entityId }) => !levels.some((level) => level.entityId === entityId))
    .map((config) => levelOf(config, config.resolved.limits, []))
    .filter(chargesRates)
    .map(askingNothing);
}

function willBePortable(request: AcquireRequest, levels: readonly LevelAsk[]): boolean {
  return request.portable === true || (request.portable === 'held' && isHeldBy(request, levels));
}

function isHeldBy({ leaseTtlMs }: AcquireRequest, levels: readonly LevelAsk[]): boolean {
  return leaseTtlMs !== undefined || levels.some(takesSlots);
}

/** Whether every level gets a holder that shows what the lease has taken. */
function holdsEverywhere(request: AcquireRequest, levels: readonly LevelAsk[], { onExpiry }: ResolvedOptions): boolean {
  return willBePortable(request, levels) || (onExpiry === 'refund' && isHeldBy(request, levels));
}

/**
 * A parent that such a lease does not ask gets a holder too, because a correction may charge it: only a holder shows to other
 * processes, and to an expiry, what was charged.
 */
function withHolderOnly(level: LevelAsk, at: number): readonly LevelAsk[] {
  if (at === 0 || asksAnything(level)) return [level];
  return chargesRates(level) ? [askingNothing(level)] : [];
}

function chargesRates({ limits }: LevelAsk): boolean {
  return limits.some(({ kind }) => isConsumed(kind));
}

function askingNothing(level: LevelAsk): LevelAsk {
  return { ...level, asks: [] };
}

/** Adds to each ask whether its limit is a shadow, and from where on its status is `near`. */
function withOptions(level: LevelAsk, chain: readonly CachedConfig[]): LevelAsk {
  const bypasses = chain.some(({ entityId, resolved }) => entityId === level.entityId && resolved.bypasses);
  if (!bypasses && !level.limits.some(({ shadow, warnAt }) => shadow || warnAt !== undefined)) return level;
  const asks = level.asks.map((ask): AskedAmount => {
    const limit = level.limits.find(({ name }) => name === ask.name);
    if (limit === undefined) return ask;
    const { shadow, warnAt } = limit;
    return { ...ask, ...(shadow || bypasses ? { shadow: true } : {}), ...(warnAt === undefined ? {} : { warnAt }) };
  });
  return { ...level, asks };
}

/** Marks the ask that may be cut. A shadow does not cut: it refuses nothing, and is taken whole or not at all. */
function withCut(level: LevelAsk, atMost: string): LevelAsk {
  const asks = level.asks.map((ask): AskedAmount =>
    ask.name === atMost && ask.shadow !== true ? { ...ask, atMost: true } : ask,
  );
  return { ...level, asks };
}

function hasSlots(config: CachedConfig): boolean {
  return config.resolved.hasSlots;
}

function ownLevel(request: AcquireRequest, config: CachedConfig, named: readonly Amount[]): LevelAsk {
  const { limits } = request;
  if (limits !== undefined) {
    return {
      ...levelOf(config, limits, named),
      resource: bucketResource(request),
      version: UNCHANGING,
      lasting: false,
    };
  }
  if (config.resolved.limits.length === 0) throw new LimitsNotConfigured(request.entityId, request.resource);
  return levelOf(config, config.resolved.limits, named);
}

/** A level takes the named amount, else its own default cost, else the amount that the entity itself spends (`spent`). */
export function levelOf(
  config: CachedConfig,
  limits: readonly Limit[],
  named: readonly Amount[],
  spent: readonly Amount[] = named,
): LevelAsk {
  const { entityId, resource, resolved } = config;
  const mayCost = resolved.hasCosts || limits !== resolved.limits;
  const asks = mayCost && hasUnnamedCost(limits, named) ? withCosts(limits, named, spent) : spent;
  const lasting = resolved.configSource === 'entity';
  return { entityId, resource, limits, version: resolved.version, lasting, asks, holder: null };
}

function hasUnnamedCost(limits: readonly Limit[], named: readonly Amount[]): boolean {
  for (const { name, cost } of limits) if (cost !== undefined && amountOf(named, name) === undefined) return true;
  return false;
}

function withCosts(limits: readonly Limit[], named: readonly Amount[], spent: readonly Amount[]): readonly Amount[] {
  const costs = limits
    .filter(({ name }) => amountOf(named, name) === undefined)
    .flatMap(({ name, cost }) => (cost === undefined ? [] : [{ name, milli: cost * MILLI }]));
  return [...spent.filter(({ name }) => amountOf(costs, name) === undefined), ...costs];
}

function asksAnything({ limits, asks }: LevelAsk): boolean {
  for (const { name } of limits) if (amountOf(asks, name) !== undefined) return true;
  return false;
}

function refuseUnknownNames(named: readonly Amount[], levels: readonly LevelAsk[]): void {
  for (const { name } of named) {
    if (isKnown(name, levels)) continue;
    const known = new Set(levels.flatMap(({ limits }) => limits.map((limit) => limit.name)));
    throw new ValidationError(`consume.${name}`, `the name of a limit (${[...known].join(', ')})`, name);
  }
}

function isKnown(name: string, levels: readonly LevelAsk[]): boolean {
  for (const level of levels) if (kindOf(level, name) !== undefined) return true;
  return false;
}

/** The key part of the bucket that a request takes from at the entity's own level. */
export function bucketResource({ resource, limits }: AcquireRequest): string {
  if (limits === undefined) return resource;
  const rules = limits.map(({ name, kind, capacity, refillAmount, refillPeriodMs }) =>
    hasBalance(kind) ? [name, capacity, refillAmount, refillPeriodMs].join(':') : `${name}:unlimited`,
  );
  return buildOwnLimitsResource(resource, rules.toSorted().join(' '));
}

/**
 * A level gets a holder if it grants slots. The entity's own level also gets one if the request has `leaseTtlMs`. If an
 * expiry gives rates back, every level of such a lease gets one, with its rate amounts. Every level of a portable lease
 * gets one, with what it took.
 */
function withHolders(
  levels: readonly LevelAsk[],
  request: AcquireRequest,
  options: ResolvedOptions,
  nowMs: EpochMs,
): readonly LevelAsk[] {
  const isHeld = isHeldBy(request, levels);
  const portable = willBePortable(request, levels);
  const asked = request.leaseTtlMs !== undefined || portable;
  if (!isHeld && !portable) return levels;
  const refunds = options.onExpiry === 'refund';
  const expiresAtMs = nowMs + (request.leaseTtlMs ?? options.leaseTtlMs);
  return levels.map((level, at) => {
    if (!(refunds || portable || takesSlots(level) || (asked && at === 0))) return level;
    const consumed = amountsOf(level, ({ name }) => isConsumed(kindOf(level, name) ?? 'rate'));
    const holder: Holder = {
      expiresAtMs,
      acquiredAtMs: nowMs,
      slots: amountsOf(level, ({ name }) => holdsSlotsOf(level, name)),
      rates: refunds ? consumed : null,
      caller: options.caller,
      ...(portable ? { portable: { state: 'open', taken: consumed, adjusts: [] } } : {}),
    };
    return { ...level, holder };
  });
}

/** Without the options of the asks: a holder stores amounts only. */
function amountsOf({ asks }: LevelAsk, isKept: (amount: Amount) => boolean): readonly Amount[] {
  return asks.filter(isKept).map(({ name, milli }) => ({ name, milli }));
}

function takesSlots(level: LevelAsk): boolean {
  for (const { name, milli } of level.asks) if (milli > 0 && holdsSlotsOf(level, name)) return true;
  return false;
}

/** Whether the level has a limit of this name, whose slots a lease holds. */
export function holdsSlotsOf(level: { readonly limits: readonly Limit[] }, name: string): boolean {
  const kind = kindOf(level, name);
  return kind !== undefined && holdsSlots(kind);
}

export function kindOf(level: { readonly limits: readonly Limit[] }, name: string): Limit['kind'] | undefined {
  for (const limit of level.limits) if (limit.name === name) return limit.kind;
  return undefined;
}
