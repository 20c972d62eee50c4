import type { LevelChange, LevelRef, LevelResult } from '../../backend.js';
import { type Amount, wholeTokens } from '../../core/bucket/decide.js';
import type { ClosedState } from '../../core/bucket/portable.js';
import { BackendUnavailable } from '../../core/errors.js';
import { buildLeaseId, parsePlainResource } from '../../core/identifiers.js';
import type { Int } from '../../core/int.js';
import type { LimitKind } from '../../core/limit-kind.js';
import type { EpochMs } from '../../core/units.js';
import { kindOf } from '../acquire/levels.js';
import { callStore, type Context, settleStore } from '../context.js';
import { isPromise } from '../outage/guard.js';
import { report } from '../store-context.js';
import type { LeaseOperation, Performed } from './lease-operation.js';
import type { TokenContent } from './lease-token.js';
import {
  bookChange,
  bookRefunds,
  changeOf,
  givenBack,
  type GrantedLevel,
  hasLimit,
  isPartlyChanged,
  type LevelAccount,
  openLevel,
  totalsAfter,
} from './level-account.js';

interface SentChange {
  readonly level: LevelAccount;
  readonly change: LevelChange;
  readonly totals: readonly Amount[];
}

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
  /** A failed change was made in part, so that even a change of nothing must be written. */
  readonly isPartlyChanged?: boolean;
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

  get isPartlyChanged(): boolean {
    return this.#levels?.some(isPartlyChanged) === true;
  }

  consumed(): Record<string, number> {
    // Before the first correction the lease has what it was granted, and needs no accounts to say it.
    if (this.#levels === null) return tokensByName(this.#granted[0]?.asks ?? []);
    const taken = this.#levels[0]?.taken ?? new Map<string, Int>();
    return tokensByName([...taken].map(([name, milli]) => ({ name, milli })));
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
    const releases = operation.kind !== 'adjust' && operation.kind !== 'settle';
    const sent: SentChange[] = [];
    for (const level of this.#accounts()) {
      const totals = totalsAfter(level, operation);
      const change = changeOf(level, totals, releases ? 'release' : 'keep');
      if (change !== null) sent.push({ level, change, totals: totals ?? [] });
    }
    if (sent.length === 0) return 'done';
    const failure = this.#book(sent, await this.#adjust(sent));
    if (releases && !this.holds) this.expiresAtMs = null;
    if (failure?.kind === 'failed') throw failure.error;
    return this.lost ? 'lost' : 'done';
  }

  /** Returns the first failure. */
  #book(sent: readonly SentChange[], results: readonly LevelResult[]): LevelResult | undefined {
    let failure: LevelResult | undefined;
    for (const [at, { level, change, totals }] of sent.entries()) {
      const result = results[at];
      if (result?.isUnfinished !== true) level.progress.state = undefined;
      if (result?.kind === 'done') {
        if (result.holderLost) this.lost = true;
        const { lines } = this.#context;
        if (!lines.isEmpty) lines.giveBack(level, givenBack(level, change));
        bookChange(level, change, totals, result);
        continue;
      }
      failure ??= result;
      if (result?.mayHaveRefunded === true) bookRefunds(level, totals);
    }
    return failure;
  }

  async #adjust(sent: readonly SentChange[]): Promise<readonly LevelResult[]> {
    const context = this.#context;
    const levels = sent.map(({ change }) => change);
    let isUnderWay = false;
    try {
      return await settleStore(context, (call) => {
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

  #accounts(): LevelAccount[] {
    this.#levels ??= this.#granted.map(openLevel);
    return this.#levels;
  }
}

function tokensByName(amounts: readonly Amount[]): Record<string, number> {
  return Object.fromEntries(amounts.map(({ name, milli }) => [name, wholeTokens(milli)]));
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
