import type { LevelOperation, LevelRef, OperationResult } from '../../backend.js';
import { type Amount, amountOf, type Holder, wholeTokens } from '../../core/bucket/decide.js';
import type { ClosedState, PortableOperation } from '../../core/bucket/portable.js';
import { buildLeaseId, encodeRandom, parsePlainResource } from '../../core/identifiers.js';
import { add, type Int, sub } from '../../core/int.js';
import type { LimitKind } from '../../core/limit.js';
import type { EpochMs } from '../../core/units.js';
import { holdsSlotsOf, kindOf } from '../acquire/levels.js';
import { callStore, type Context } from '../context.js';
import { type LeaseAccount, newestLimits } from './lease-account.js';
import { isConsumedOf } from './level-account.js';
import type { LeaseOperation, Performed } from './lease-operation.js';
import type { TokenContent, TokenLevel } from './lease-token.js';

interface PortableLevel extends TokenLevel {
  limits: LevelRef['limits'];
  version: LevelRef['version'];
  /** What the lease has taken from rates and unlimited limits, as this process knows it. */
  taken: readonly Amount[];
  slots: readonly Amount[];
  /** A write found that the holder no longer exists. */
  lost: boolean;
  /** What the lease had taken is charged: an expiry of its holder kept it, or it was charged again after the loss. */
  paid: boolean;
}

/**
 * The account of a lease that may be in use by several processes. Its state is in the holders: every operation names what
 * it wants, and the store decides what is due. The first level decides first, so that of two contradictory operations
 * only one reaches the other levels.
 */
export class PortableAccount implements LeaseAccount {
  readonly leaseId: string;
  expiresAtMs: EpochMs | null;
  lost = false;
  /** How another process, or an earlier call, has ended the lease, as far as this process knows. */
  closedAs: ClosedState | null = null;
  readonly #context: Context;
  readonly #ttlMs: number;
  readonly #levels: readonly PortableLevel[];

  /** `holders`: what the store has now, if that was read; an acquire knows it from its grant. */
  constructor(
    context: Context,
    { leaseId, ttlMs, levels }: Omit<TokenContent, 'namespaceId'>,
    holders: readonly (Holder | null | undefined)[],
  ) {
    this.#context = context;
    this.leaseId = leaseId;
    this.#ttlMs = ttlMs;
    this.#levels = levels.map((level, at) => levelAccount(level, holders[at] ?? undefined));
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
    for (const level of this.#levels) {
      const kind = kindOf(level, name);
      if (kind !== undefined) return kind;
    }
    return undefined;
  }

  async learnLimits(): Promise<void> {
    const newest = await newestLimits(this.#context, this);
    for (const level of this.#levels) Object.assign(level, newest(level));
  }

  async perform(operation: LeaseOperation): Promise<Performed> {
    // One id for all levels and for every attempt of this call.
    const id = operation.kind === 'adjust' && operation.id === null ? createOperationId(this.#context) : null;
    const [first, ...others] = this.#levels as [PortableLevel, ...PortableLevel[]];
    const before = first.taken;
    const decided = await this.#send([first], operation, id);
    if (decided !== 'done' && decided !== 'lost') return decided;
    const same = first.lost ? operation : followedBy(operation, first, before);
    const followed = others.length === 0 ? 'done' : await this.#send(others, same, id);
    // Once the first level has made the operation, it came before the end: that end has brought it to the other levels.
    if (followed !== 'done' && followed !== 'lost' && first.lost) return followed;
    if (operation.kind === 'commit' || operation.kind === 'keep') this.closedAs = 'committed';
    if (operation.kind === 'rollback') this.closedAs = 'rolled-back';
    return this.lost ? 'lost' : 'done';
  }

  async #send(levels: readonly PortableLevel[], operation: LeaseOperation, id: string | null): Promise<Performed> {
    const context = this.#context;
    const sent = levels.map((level) => changeOf(level, operation, id));
    const results = await callStore(context, 'settling a lease', (call) =>
      context.backend.operate(call, { leaseId: this.leaseId, levels: sent }),
    );
    for (const [at, level] of levels.entries()) this.#book(level, sent[at] as LevelOperation, results[at]);
    for (const result of results) if (result.kind === 'failed') throw result.error;
    for (const result of results) if (result.kind === 'closed') return result.state;
    return this.lost ? 'lost' : 'done';
  }

  #book(level: PortableLevel, { operation, dueIfLost }: LevelOperation, result: OperationResult | undefined): void {
    if (result === undefined || result.kind === 'failed') return;
    if (result.kind === 'closed') {
      this.closedAs = result.state;
      return;
    }
    if (result.kind === 'lost') {
      this.lost = true;
      level.lost = true;
      level.slots = [];
      level.taken = level.paid ? merged(level.taken, dueIfLost, 'add') : dueIfLost;
      level.paid ||= dueIfLost.length > 0;
      return;
    }
    const returned = level.taken.map(({ name, milli }) => ({
      name,
      milli: sub(milli, amountOf(result.taken, name) ?? 0),
    }));
    const slots = operation.kind === 'settle' || operation.kind === 'adjust' ? [] : level.slots;
    level.taken = result.taken;
    if (slots.length > 0) level.slots = [];
    this.#context.lines.giveBack(level, [...returned.filter(({ milli }) => milli > 0), ...slots]);
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

/** The time and 36 random bits: two processes may adjust in the same millisecond. */
function createOperationId({ clock, random }: Context): string {
  return buildLeaseId(clock.now(), random()) + encodeRandom(random());
}

function levelAccount(level: TokenLevel, holder: Holder | undefined): PortableLevel {
  const isSlots = ({ name }: Amount): boolean => holdsSlotsOf(level, name);
  const granted = level.granted.filter((amount) => !isSlots(amount));
  return {
    ...level,
    taken: holder?.portable?.taken ?? granted,
    slots: holder?.slots ?? [],
    lost: holder === undefined,
    paid: !level.refunds,
  };
}

function changeOf(level: PortableLevel, operation: LeaseOperation, id: string | null): LevelOperation {
  const { entityId, resource, limits, version, lasting, place } = level;
  const ref = { entityId, resource, limits, version, place, ...(lasting === undefined ? {} : { lasting }) };
  return {
    ...ref,
    kind: 'operation',
    operation: operationAt(level, operation, id),
    dueIfLost: amountsIfLost(level, operation),
  };
}

/**
 * What the other levels do after the first one. A commit states every total of the first level: another process may have
 * settled or adjusted there, or have committed other totals, without having reached the other levels.
 */
function followedBy(operation: LeaseOperation, first: PortableLevel, before: readonly Amount[]): LeaseOperation {
  if (operation.kind !== 'commit' && operation.kind !== 'keep') return operation;
  const isOwn = ({ name }: Amount): boolean => isConsumedOf(first, name) && first.untaken?.has(name) !== true;
  const none = [...first.granted, ...before].map(({ name }) => ({ name, milli: 0 }));
  const decided = merged(none, first.taken, 'replace').filter(isOwn);
  return { kind: 'commit', totals: merged(operation.kind === 'commit' ? operation.totals : [], decided, 'replace') };
}

/** The part of an operation that names limits of this level. */
function operationAt(level: PortableLevel, operation: LeaseOperation, id: string | null): PortableOperation {
  const here = (amounts: readonly Amount[]): readonly Amount[] =>
    amounts.filter(({ name }) => kindOf(level, name) !== undefined && level.untaken?.has(name) !== true);
  switch (operation.kind) {
    case 'settle':
    case 'commit':
      return { kind: operation.kind, totals: here(operation.totals) };
    case 'adjust':
      return { kind: 'adjust', deltas: here(operation.deltas), id: operation.id ?? id ?? '' };
    case 'keep': {
      const others = level.taken.filter(({ name }) => !operation.names.has(name));
      return { kind: 'commit', totals: others.map(({ name }) => ({ name, milli: 0 })) };
    }
    case 'release':
    case 'rollback':
      return { kind: operation.kind };
  }
}

/**
 * If an expiry has given the rates back, the whole totals are due again. If it has kept them, what exceeds them is due.
 * Nothing is given back: the holder may be gone because the lease has ended.
 */
function amountsIfLost(level: PortableLevel, operation: LeaseOperation): readonly Amount[] {
  const at = operationAt(level, operation, null);
  if (!('totals' in at || 'deltas' in at)) return [];
  const after = 'deltas' in at ? merged(level.taken, at.deltas, 'add') : merged(level.taken, at.totals, 'replace');
  const before = level.paid ? level.taken : [];
  return after
    .map(({ name, milli }) => ({ name, milli: sub(milli, amountOf(before, name) ?? 0) }))
    .filter(({ milli }) => milli > 0);
}

function merged(a: readonly Amount[], b: readonly Amount[], how: 'add' | 'replace'): readonly Amount[] {
  const sums = new Map<string, Int>(a.map(({ name, milli }) => [name, milli]));
  for (const { name, milli } of b) sums.set(name, how === 'add' ? add(sums.get(name) ?? 0, milli) : milli);
  return [...sums].map(([name, milli]) => ({ name, milli }));
}
