import type { LevelOperation, OperationResult } from '../../backend.js';
import { type Amount, type Holder, wholeTokens } from '../../core/bucket/decide.js';
import type { ClosedState } from '../../core/bucket/portable.js';
import { buildLeaseId, encodeRandom, parsePlainResource } from '../../core/identifiers.js';
import type { Int } from '../../core/int.js';
import type { LimitKind } from '../../core/limit-kind.js';
import type { EpochMs } from '../../core/units.js';
import { kindOf } from '../acquire/levels.js';
import { callStore, type Context, settleStore } from '../context.js';
import { report } from '../store-context.js';
import { type LeaseAccount, newestLimits } from './lease-account.js';
import type { LeaseOperation, Performed } from './lease-operation.js';
import type { TokenContent } from './lease-token.js';
import {
  bookAccount,
  bookLoss,
  decisionAt,
  followAt,
  grantedApart,
  openPortableLevel,
  type PortableLevel,
  raiseAt,
} from './portable-level.js';

type Answer = Exclude<OperationResult, { readonly kind: 'failed' }>;

/**
 * The account of a lease that may be in use by several processes. Its state is in the holders: every operation states the
 * change, and the store decides what is due. The first level decides for all levels, and answers with the whole account of
 * the lease. The parents are brought to that account, so that they agree in whatever order they are reached, and the next
 * operation brings them what a process that was killed has not.
 */
export class PortableAccount implements LeaseAccount {
  readonly leaseId: string;
  expiresAtMs: EpochMs | null;
  lost = false;
  /** How another process, or an earlier call, has ended the lease, as far as this process knows. */
  closedAs: ClosedState | null = null;
  /** A holder that is missing before this time was removed after the lease had ended. */
  readonly #unexpiredUntilMs: EpochMs;
  readonly #context: Context;
  readonly #ttlMs: number;
  readonly #levels: readonly PortableLevel[];
  readonly #apart: ReadonlyMap<string, Int>;

  /** `holders`: what the store has now, if that was read; an acquire knows it from its grant. */
  constructor(
    context: Context,
    { leaseId, ttlMs, levels }: Omit<TokenContent, 'namespaceId'>,
    holders: readonly (Holder | null | undefined)[],
    unexpiredUntilMs: EpochMs = 0,
  ) {
    this.#unexpiredUntilMs = unexpiredUntilMs;
    this.#context = context;
    this.leaseId = leaseId;
    this.#ttlMs = ttlMs;
    this.#levels = levels.map((level, at) => openPortableLevel(level, holders[at] ?? undefined));
    this.#apart = grantedApart(levels);
    const [first] = holders;
    this.expiresAtMs = first?.expiresAtMs ?? null;
    this.lost = this.#levels.some((level) => level.lost);
    const state = first?.portable?.state;
    if (state !== undefined && state !== 'open') this.closedAs = state;
  }

  get entityId(): string {
    return this.#levels[0]?.entityId ?? '';
  }

  get resource(): string {
    return parsePlainResource(this.#levels[0]?.resource ?? '');
  }

  /** The holder also answers repeats, so it is asked until it is known to be lost. */
  get holds(): boolean {
    return true;
  }

  tokenContent(): TokenContent {
    const { namespaceId } = this.#context;
    return { namespaceId, leaseId: this.leaseId, ttlMs: this.#ttlMs, levels: this.#levels };
  }

  consumed(): Record<string, number> {
    const { taken = [], slots = [] } = this.#levels[0] ?? {};
    return Object.fromEntries([...taken, ...slots].map(({ name, milli }) => [name, wholeTokens(milli)]));
  }

  kindOf(name: string): LimitKind | undefined {
    const level = this.#levels.find((one) => kindOf(one, name) !== undefined);
    return level && kindOf(level, name);
  }

  async learnLimits(): Promise<void> {
    const newest = await newestLimits(this.#context, this);
    for (const level of this.#levels) Object.assign(level, newest(level));
  }

  async perform(operation: LeaseOperation): Promise<Performed> {
    const [first, ...parents] = this.#levels as [PortableLevel, ...PortableLevel[]];
    // One id for all levels and for every attempt of this call.
    const id = operation.kind === 'adjust' ? (operation.id ?? createOperationId(this.#context)) : null;
    const { closedAs } = this;
    const [decided] = await this.#send([first], [decisionAt(first, operation, this.#apart, id)]);
    if (decided === undefined || decided.kind === 'lost') return this.#performAtParents(parents, operation, id);
    const accounts = parents.map((parent) => followAt(parent, first, decided.part, this.#apart));
    const following = this.#send(parents, accounts);
    if (decided.kind === 'closed') {
      // The process that has ended the lease may have been killed before the parents knew.
      await following.catch((error: unknown) => report(this.#context.options, error, 'ending a lease'));
      return decided.state;
    }
    try {
      await following;
    } catch (error) {
      // Its repetition is still the end by this process.
      this.closedAs = closedAs;
      throw error;
    }
    return this.lost ? 'lost' : 'done';
  }

  /** The first level has lost its holder, and decides nothing. */
  async #performAtParents(
    parents: readonly PortableLevel[],
    operation: LeaseOperation,
    id: string | null,
  ): Promise<Performed> {
    const sent = parents.map((parent) => raiseAt(parent, operation, id));
    const closed = (await this.#send(parents, sent)).find((result) => result.kind === 'closed');
    if (closed !== undefined) return (this.closedAs = closed.state);
    if (operation.kind === 'commit' || operation.kind === 'keep') this.closedAs = 'committed';
    if (operation.kind === 'rollback') this.closedAs = 'rolled-back';
    return 'lost';
  }

  /** Throws the first failure after all levels have been tried. */
  async #send(levels: readonly PortableLevel[], sent: readonly LevelOperation[]): Promise<readonly Answer[]> {
    if (levels.length === 0) return [];
    const context = this.#context;
    // What is due after a loss is booked in any case: the operation that is repeated has charged it.
    const due = context.clock.now() < this.#unexpiredUntilMs ? sent.map(withNothingDue) : sent;
    const change = { leaseId: this.leaseId, levels: due };
    const results = await settleStore(context, (call) => context.backend.operate(call, change));
    for (const [at, level] of levels.entries()) this.#book(level, sent[at]?.dueIfLost ?? [], results[at]);
    for (const result of results) if (result.kind === 'failed') throw result.error;
    return results.filter(isAnswer);
  }

  #book(level: PortableLevel, dueIfLost: readonly Amount[], result: OperationResult | undefined): void {
    if (result === undefined || !isAnswer(result)) return;
    if (result.kind === 'lost') {
      this.lost = true;
      bookLoss(level, dueIfLost);
      return;
    }
    const { state } = result.part;
    if (state !== 'open') this.closedAs = state;
    this.#context.lines.giveBack(level, bookAccount(level, result.part));
  }

  async extend(ttlMs: number): Promise<boolean | ClosedState> {
    const context = this.#context;
    const nowMs = context.clock.now();
    const expiresAtMs = nowMs + ttlMs;
    const extended = await callStore(
      context,
      'extending a lease',
      (call) => context.backend.extend(call, { leaseId: this.leaseId, levels: this.#levels, expiresAtMs }),
      nowMs,
    );
    if (extended === true) this.expiresAtMs = expiresAtMs;
    else if (extended === false) this.lost = true;
    else this.closedAs = extended;
    return extended;
  }
}

function isAnswer(result: OperationResult): result is Answer {
  return result.kind !== 'failed';
}

function withNothingDue(change: LevelOperation): LevelOperation {
  return { ...change, dueIfLost: [] };
}

/** The time and 36 random bits: two processes may adjust in the same millisecond. */
function createOperationId({ clock, random }: Context): string {
  return buildLeaseId(clock.now(), random()) + encodeRandom(random());
}
