import type { LevelAsk, LevelChange, LevelRef, LevelResult, GrantLocation } from '../../backend.js';
import { type Amount, wholeTokens } from '../../core/bucket/decide.js';
import { deltasOf, type RateTotal } from '../../core/bucket/holder-rules.js';
import { BackendUnavailable, ValidationError } from '../../core/errors.js';
import type { ClosedState } from '../../core/bucket/portable.js';
import { buildLeaseId, parsePlainResource } from '../../core/identifiers.js';
import { add, type Int, sub } from '../../core/int.js';
import { isConsumed, type LimitKind } from '../../core/limit.js';
import type { EpochMs } from '../../core/units.js';
import { callStore, type Context } from '../context.js';
import { report } from '../store-context.js';
import { isPromise } from '../outage/guard.js';
import { holdsSlotsOf, kindOf } from '../acquire/levels.js';
import type { LeaseOperation, Performed } from './lease-operation.js';
import type { TokenContent } from './lease-token.js';

/** What was taken at one level, and where the store recorded it. */
export interface GrantedLevel extends LevelAsk {
  readonly place?: GrantLocation;
  /** Shadows that were short and of which nothing was taken. */
  readonly untaken?: ReadonlySet<string>;
}

interface LevelAccount extends LevelRef {
  readonly place: GrantLocation;
  limits: LevelRef['limits'];
  version: LevelRef['version'];
  /** In millitokens, for rates and slots. */
  readonly taken: Map<string, Int>;
  /** Shadows of which nothing was taken. Corrections of them change nothing. */
  readonly untaken: ReadonlySet<string> | undefined;
  /** Whether the bucket keeps a holder of this lease. */
  held: boolean;
  readonly refundsOnExpiry: boolean;
}

interface SentChange {
  readonly level: LevelAccount;
  readonly change: LevelChange;
  readonly totals: readonly Amount[];
}

/** For each level, the rates that change, with their new totals. */
type Totals = readonly (readonly Amount[])[];

/** What a lease has taken, and how that is corrected. */
export interface LeaseAccount {
  readonly leaseId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly expiresAtMs: EpochMs | null;
  /** A write found that a holder no longer exists. */
  readonly lost: boolean;
  /** Whether the lease still has a holder in the store. */
  readonly holds: boolean;
  /** What was taken at the entity's own level, in whole tokens. */
  consumed(): Record<string, number>;
  kindOf(name: string): LimitKind | undefined;
  /** Reads the config again: limits may have been added since the grant. */
  learnLimits(): Promise<void>;
  /** Sends what changes. Throws the first failure after all levels have been tried: a repeat sends only what failed. */
  perform(operation: LeaseOperation): Promise<Performed>;
  /** False: a holder no longer exists. A state: another process has ended the portable lease. */
  extend(ttlMs: number): Promise<boolean | ClosedState>;
  /** How another process has ended the portable lease, as far as this process knows. */
  readonly closedAs?: ClosedState | null;
  /** What the token of a portable lease says. */
  tokenContent?(): TokenContent;
}

/** Keeps the amounts of each level. A correction is a difference to what was taken, so a failed level can be sent again. */
export class StoredLeaseAccount implements LeaseAccount {
  expiresAtMs: EpochMs | null = null;
  lost = false;
  readonly #context: Context;
  readonly #grantedAtMs: EpochMs;
  #leaseId: string | null;
  readonly #granted: readonly GrantedLevel[];
  /** Created at the first correction, because most leases have none. */
  #levels: LevelAccount[] | null = null;

  constructor(context: Context, nowMs: EpochMs, leaseId: string | null, granted: readonly GrantedLevel[]) {
    this.#context = context;
    this.#grantedAtMs = nowMs;
    this.#leaseId = leaseId;
    this.#granted = granted;
    for (const { holder } of granted) if (holder !== null) this.expiresAtMs = holder.expiresAtMs;
  }

  /** Read from the grant, because the caller may have changed its request object since. */
  get entityId(): string {
    return this.#granted[0]?.entityId ?? '';
  }

  get resource(): string {
    return parsePlainResource(this.#granted[0]?.resource ?? '');
  }

  /** Without a holder nothing is stored under the id, so it is created at first use. */
  get leaseId(): string {
    this.#leaseId ??= buildLeaseId(this.#grantedAtMs, this.#context.random());
    return this.#leaseId;
  }

  get holds(): boolean {
    if (this.expiresAtMs === null) return false;
    return this.#accounts().some(({ held }) => held);
  }

  consumed(): Record<string, number> {
    const taken = this.#accounts()[0]?.taken ?? new Map<string, Int>();
    return Object.fromEntries([...taken].map(([name, milli]) => [name, wholeTokens(milli)]));
  }

  kindOf(name: string): LimitKind | undefined {
    for (const level of this.#levels ?? this.#granted) if (hasLimit(level, name)) return kindOf(level, name);
    return undefined;
  }

  async learnLimits(): Promise<void> {
    const newest = await newestLimits(this.#context, this);
    for (const level of this.#accounts()) Object.assign(level, newest(level));
  }

  async perform(operation: LeaseOperation): Promise<Performed> {
    switch (operation.kind) {
      case 'adjust':
        return this.#write(this.#planDeltas(operation.deltas), 'keep');
      case 'settle':
        return this.#write(this.#planTotals(operation.totals), 'keep');
      case 'commit':
        return this.#write(this.#planTotals(operation.totals), 'release');
      case 'rollback':
        return this.#write(this.#planReturn(null), 'release');
      case 'keep':
        return this.#write(this.#planReturn(operation.names), 'release');
      case 'release':
        return this.#write(null, 'release');
    }
  }

  #planTotals(actuals: readonly Amount[]): Totals {
    return this.#accounts().map((level) => actuals.filter(({ name }) => isCharged(level, name)));
  }

  /** A lease gives back at most what it took. More would create tokens. */
  #planDeltas(deltas: readonly Amount[]): Totals {
    return this.#accounts().map((level) =>
      deltas
        .filter(({ name }) => isCharged(level, name))
        .map(({ name, milli: delta }) => {
          const taken = level.taken.get(name) ?? 0;
          const milli = add(taken, delta);
          if (milli >= 0) return { name, milli };
          const least = `at least -${wholeTokens(taken)}, what was taken`;
          throw new ValidationError(`deltas.${name}`, least, wholeTokens(delta));
        }),
    );
  }

  /** Gives everything back, except for the named limits. */
  #planReturn(except: ReadonlySet<string> | null): Totals {
    return this.#accounts().map((level) =>
      [...level.taken.keys()]
        .filter((name) => isConsumedOf(level, name) && except?.has(name) !== true)
        .map((name) => ({ name, milli: 0 })),
    );
  }

  /**
   * Sends what changes, and keeps or removes the holder. null: the rates stay as they are, also if an expiry gave them
   * back.
   */
  async #write(totals: Totals | null, holder: 'keep' | 'release'): Promise<Performed> {
    const sent: SentChange[] = [];
    for (const [at, level] of this.#accounts().entries()) {
      const levelTotals = totals === null ? null : (totals[at] ?? []);
      const change = changeOf(level, levelTotals, holder);
      if (change !== null) sent.push({ level, change, totals: levelTotals ?? [] });
    }
    if (sent.length === 0) return 'done';
    const results = await this.#adjust(sent);
    let failure: LevelResult | undefined;
    for (const [at, { level, change, totals: levelTotals }] of sent.entries()) {
      const result = results[at];
      if (result?.kind === 'done') {
        this.#book(level, change, levelTotals, result.holderLost);
        continue;
      }
      failure ??= result;
      if (result?.mayHaveRefunded === true) bookRefunds(level, levelTotals);
    }
    if (holder === 'release' && !this.holds) this.expiresAtMs = null;
    if (failure?.kind === 'failed') throw failure.error;
    return this.lost ? 'lost' : 'done';
  }

  async #adjust(sent: readonly SentChange[]): Promise<readonly LevelResult[]> {
    const context = this.#context;
    const levels = sent.map(({ change }) => change);
    let isUnderWay = false;
    try {
      return await callStore(context, 'settling a lease', (call) => {
        const answer = context.backend.adjust(call, { leaseId: this.leaseId, levels });
        if (!isPromise(answer)) return answer;
        isUnderWay = true;
        return answer.finally(() => (isUnderWay = false));
      });
    } catch (error) {
      // The call timed out. Its write may still land.
      if (isUnderWay) this.#giveRefundsUp(sent, error);
      throw error;
    }
  }

  /** Reports the refund to `onError`: the caller only gets a timeout, which does not say that tokens may be lost. */
  #giveRefundsUp(sent: readonly SentChange[], cause: unknown): void {
    const isRefund = sent.map(({ level, totals }) => bookRefunds(level, totals));
    if (!isRefund.includes(true)) return;
    const what = `A refund of ${this.entityId} on ${this.resource} got no answer in time`;
    const message = `${what}; it is not sent again, because it could count twice: the tokens may stay taken`;
    report(this.#context.options, new BackendUnavailable(message, 'timeout', { cause }), 'giving tokens back');
  }

  async extend(ttlMs: number): Promise<boolean> {
    const context = this.#context;
    const nowMs = context.clock.now();
    const expiresAtMs = nowMs + ttlMs;
    const levels = this.#accounts().filter(({ held }) => held);
    const extended = await callStore(
      context,
      'extending a lease',
      (call) => context.backend.extend(call, { leaseId: this.leaseId, levels, expiresAtMs }),
      nowMs,
    );
    if (extended === true) this.expiresAtMs = expiresAtMs;
    else this.lost = true;
    return extended === true;
  }

  #book(level: LevelAccount, change: LevelChange, totals: readonly Amount[], holderLost: boolean): void {
    const returned = givenBack(level, change);
    for (const { name, milli } of totals) level.taken.set(name, milli);
    if (holderLost) this.lost = true;
    // The settle or commit after this release must charge again what an expiry gave back.
    const unpaid = holderLost && level.refundsOnExpiry && change.kind === 'deltas';
    if (!unpaid && (holderLost || change.holder === 'release')) {
      level.held = false;
      for (const name of level.taken.keys()) if (holdsSlotsOf(level, name)) level.taken.delete(name);
    }
    this.#context.lines.giveBack(level, returned);
  }

  #accounts(): LevelAccount[] {
    this.#levels ??= this.#granted.map(
      ({ entityId, resource, limits, version, lasting, asks, holder, place, untaken }) => ({
        entityId,
        resource,
        limits,
        version,
        ...(lasting === undefined ? {} : { lasting }),
        place,
        untaken,
        taken: new Map(asks.map(({ name, milli }) => [name, milli])),
        held: holder !== null,
        refundsOnExpiry: holder !== null && holder.rates !== null,
      }),
    );
    return this.#levels;
  }
}

/** Reads the config again. The returned function gives the newest rules of a level; undefined if it has none. */
export async function newestLimits(
  { resolver, clock, options }: Context,
  { entityId: ownId, resource }: Pick<LeaseAccount, 'entityId' | 'resource'>,
): Promise<(level: LevelRef) => Pick<LevelRef, 'limits' | 'version'> | undefined> {
  const nowMs = clock.now();
  // The write that follows has its own `callMs`. A shorter deadline could leave its outcome unknown.
  const endMs = nowMs + options.timeouts.callMs;
  const chain = await resolver.renewChain(resolver.lastKnownChain(ownId, resource), nowMs, endMs);
  return (level) => {
    // The rules of a bucket of per-call limits never change.
    if (level.resource !== resource) return undefined;
    const newest = chain.find(({ entityId }) => entityId === level.entityId)?.resolved;
    if (newest === undefined || newest.limits.length === 0) return undefined;
    return { limits: newest.limits, version: newest.version };
  };
}

/** The amounts that a completed change returned to the bucket. */
function givenBack({ limits, taken }: LevelAccount, change: LevelChange): readonly Amount[] {
  const refunds = deltasOf(change).filter(({ milli }) => milli < 0);
  const rates = refunds.map(({ name, milli }) => ({ name, milli: sub(0, milli) }));
  if (change.holder !== 'release') return rates;
  const slots = [...taken].filter(([name]) => holdsSlotsOf({ limits }, name));
  return [...rates, ...slots.map(([name, milli]) => ({ name, milli }))];
}

export function isConsumedOf(level: LevelRef, name: string): boolean {
  const kind = kindOf(level, name);
  return kind !== undefined && isConsumed(kind);
}

function hasLimit(level: LevelRef, name: string): boolean {
  return kindOf(level, name) !== undefined;
}

function isCharged(level: LevelAccount, name: string): boolean {
  return hasLimit(level, name) && level.untaken?.has(name) !== true;
}

/**
 * Books a refund that may have landed as done. Sending it again could give back twice, which would admit too much. Debits
 * are sent again; a holder can be removed only once. False: the totals contain no refund.
 */
function bookRefunds({ taken }: LevelAccount, totals: readonly Amount[]): boolean {
  const refunds = totals.filter(({ name, milli }) => milli < (taken.get(name) ?? 0));
  for (const { name, milli } of refunds) taken.set(name, milli);
  return refunds.length > 0;
}

/** null: nothing to write at this level. */
function changeOf(
  level: LevelAccount,
  totals: readonly Amount[] | null,
  holder: 'keep' | 'release',
): LevelChange | null {
  const deltas = (totals ?? [])
    .map(({ name, milli }) => ({ name, milli: sub(milli, level.taken.get(name) ?? 0) }))
    .filter(({ milli }) => milli !== 0);
  const statesTotals = level.held && level.refundsOnExpiry && totals !== null;
  // The holder must be read to give its slots back, or to learn whether an expiry has already given these totals back.
  const asksHolder = level.held && (holder === 'release' || (statesTotals && totals.length > 0));
  if (deltas.length === 0 && !asksHolder) return null;
  if (statesTotals) return { ...refOf(level), kind: 'totals', totals: ratesAfter(level, totals), holder };
  // One literal: to spread a reference first takes as long as the rest of a release.
  const { entityId, resource, limits, version, lasting, place } = level;
  const fate = level.held ? holder : 'none';
  return lasting === undefined
    ? { entityId, resource, limits, version, place, kind: 'deltas', deltas, holder: fate }
    : { entityId, resource, limits, version, lasting, place, kind: 'deltas', deltas, holder: fate };
}

function refOf({
  entityId,
  resource,
  limits,
  version,
  lasting,
  place,
}: LevelAccount): LevelRef & Pick<LevelChange, 'place'> {
  return { entityId, resource, limits, version, ...(lasting === undefined ? {} : { lasting }), place };
}

function ratesAfter(level: LevelAccount, totals: readonly Amount[]): readonly RateTotal[] {
  const after = new Map(level.taken);
  for (const { name, milli } of totals) after.set(name, milli);
  return [...after]
    .filter(([name]) => isConsumedOf(level, name))
    .map(([name, milli]) => ({ name, milli, deltaMilli: sub(milli, level.taken.get(name) ?? 0) }));
}
