import type { Amount, AskedAmount } from '../../../src/core/bucket/decide.js';
import { deltasOf, type RateTotals } from '../../../src/core/bucket/holder-rules.js';
import type { AskEntry, ChangeEntry, Entry, EntryResult } from '../../../src/backends/dynamodb/bucket/group/entries.js';
import type { ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { worthOf } from '../../oracle/model.js';

interface ModelHolder {
  readonly expiresAtMs: number;
  readonly slots: readonly Amount[];
  readonly rates: readonly Amount[] | null;
}

/** The expected answer of each entry. */
export type Answer =
  | { readonly kind: 'granted' | 'denied'; readonly left: ReadonlyMap<string, bigint> }
  | { readonly kind: 'id-taken' }
  | { readonly kind: 'done'; readonly holderLost: boolean }
  | { readonly kind: 'extended'; readonly found: boolean };

/**
 * One shard as a plain account that runs one entry after the other, in numbers of any size. It has the stored state,
 * and shares no arithmetic with the planning that it checks. Asks come first, those with less reserve before the
 * others and otherwise in the order of their arrival, those that may be cut last, without those that do not fit; then debits; then refunds. A refused ask first reclaims expired holders.
 */
export class SequentialModel {
  readonly #nowMs: number;
  readonly #image: ShardImage;
  readonly tokens: Map<string, bigint>;
  readonly holders: Map<string, ModelHolder>;
  acquires = 0;
  expired = 0;
  readonly consumed = new Map<string, bigint>();

  constructor(truth: ShardImage, nowMs: number) {
    this.#nowMs = nowMs;
    this.#image = truth;
    this.tokens = new Map(
      truth.limits.map(({ limit, rate, tokensMilli }) => [limit.name, worthOf(rate, tokensMilli, truth.baseMs, nowMs)]),
    );
    this.holders = new Map(
      [...truth.holders].map(([id, { expiresAtMs, slots, rates }]) => [id, { expiresAtMs, slots, rates }]),
    );
  }

  /**
   * `null` results are entries that wait for the next write. `reclaimed` are the expired holders that were reclaimed
   * first.
   */
  run(
    entries: readonly Entry[],
    results: readonly (EntryResult | null)[],
    reclaimed: readonly string[],
  ): readonly (Answer | null)[] {
    const now = entries.filter((_, at) => results[at] !== null);
    this.#reclaim(reclaimed);
    const answers = new Map<Entry, Answer>();
    const asks = now.filter((entry) => entry.kind === 'ask');
    for (const entry of asks.toSorted(byReserve).toSorted(byCut)) {
      answers.set(entry, this.#ask(withTaken(entry, results[entries.indexOf(entry)] ?? null)));
    }
    // Debits come before refunds, because a refund above the brim is lost even if a debit follows.
    const refunds: (readonly [string, bigint])[] = [];
    for (const entry of now) {
      if (entry.kind === 'change') answers.set(entry, this.#change(entry, refunds));
      if (entry.kind === 'extend') answers.set(entry, this.#extend(entry.leaseId, entry.expiresAtMs));
    }
    for (const [name, milli] of refunds) this.#move(name, milli);
    return entries.map((entry) => answers.get(entry) ?? null);
  }

  #ask({ level, leaseId, counts, shadowsAside }: Extract<Entry, { kind: 'ask' }>): Answer {
    const left = new Map(this.tokens);
    const asks = level.asks.filter(({ name }) => left.has(name));
    const isShort = ({ name, milli, reserve, shadow }: AskedAmount): boolean =>
      (shadow === true && shadowsAside === true) || left.get(name)! < BigInt(milli) + this.#reserved(name, reserve);
    if (asks.some((ask) => ask.shadow !== true && isShort(ask))) return { kind: 'denied', left };
    const taken = asks.filter((ask) => !isShort(ask));
    if (level.holder !== null && leaseId !== null) {
      if (this.holders.has(leaseId)) return { kind: 'id-taken' };
      const isTaken = ({ name }: Amount): boolean => taken.some((ask) => ask.name === name);
      const { slots, rates } = level.holder;
      this.holders.set(leaseId, {
        ...level.holder,
        slots: slots.filter(isTaken),
        rates: rates?.filter(isTaken) ?? null,
      });
    }
    for (const { name, milli } of taken) this.#move(name, -BigInt(milli));
    // A shadow that is short counts the ask.
    for (const { name, milli } of asks.filter(isShort)) {
      if (this.#isOfKind(name, 'rate')) this.consumed.set(name, (this.consumed.get(name) ?? 0n) + BigInt(milli));
    }
    if (counts) this.acquires += 1;
    return { kind: 'granted', left };
  }

  /** What must stay: a share of the capacity, in whole slots where the limit has slots. */
  #reserved(name: string, reserve = 0): bigint {
    const { limit } = this.#image.limits.find((account) => account.limit.name === name)!;
    const milli = (BigInt(limit.capacityMilli) * BigInt(Math.round(reserve * 1_000))) / 1_000n;
    return limit.kind === 'rate' ? milli : ((milli + 999n) / 1_000n) * 1_000n;
  }

  #change({ level, leaseId, uncounts }: ChangeEntry, refunds: (readonly [string, bigint])[]): Answer {
    const stored = level.holder === 'none' ? undefined : this.holders.get(leaseId);
    const holderLost = level.holder !== 'none' && stored === undefined;
    for (const { name, milli } of level.kind === 'totals' ? dueTotals(level, stored) : deltasOf(level)) {
      if (!this.#isOfKind(name, 'rate')) continue;
      if (milli > 0) this.#move(name, -BigInt(milli));
      else refunds.push([name, -BigInt(milli)]);
    }
    if (stored !== undefined && level.holder === 'release') {
      this.holders.delete(leaseId);
      refunds.push(...this.#partsOf(stored.slots, 'concurrent'));
    } else if (stored !== undefined && stored.rates !== null && level.kind === 'totals') {
      const rates = level.totals.filter(({ name }) => this.#isOfKind(name, 'rate'));
      this.holders.set(leaseId, { ...stored, rates: rates.map(({ name, milli }) => ({ name, milli })) });
    }
    if (uncounts) this.acquires -= 1;
    return { kind: 'done', holderLost };
  }

  #extend(leaseId: string, expiresAtMs: number): Answer {
    const stored = this.holders.get(leaseId);
    if (stored !== undefined) this.holders.set(leaseId, { ...stored, expiresAtMs });
    return { kind: 'extended', found: stored !== undefined };
  }

  #reclaim(ids: readonly string[]): void {
    for (const id of ids) {
      const { expiresAtMs, slots, rates } = this.holders.get(id)!;
      if (expiresAtMs > this.#nowMs) throw new Error(`${id} lives`);
      this.holders.delete(id);
      this.expired += 1;
      for (const [name, milli] of this.#partsOf(slots, 'concurrent')) this.#move(name, milli);
      for (const [name, milli] of this.#partsOf(rates ?? [], 'rate')) this.#move(name, milli);
    }
  }

  #partsOf(amounts: readonly Amount[], kind: 'rate' | 'concurrent'): (readonly [string, bigint])[] {
    return amounts.filter(({ name }) => this.#isOfKind(name, kind)).map(({ name, milli }) => [name, BigInt(milli)]);
  }

  #move(name: string, milli: bigint): void {
    const { rate } = this.#image.limits.find(({ limit }) => limit.name === name)!;
    const after = this.tokens.get(name)! + milli;
    const capacity = BigInt(rate.capacityMilli);
    this.tokens.set(name, rate.refillPeriodMs !== 0 && after > capacity ? capacity : after);
    if (rate.refillPeriodMs !== 0) this.consumed.set(name, (this.consumed.get(name) ?? 0n) - milli);
  }

  #isOfKind(name: string, kind: 'rate' | 'concurrent'): boolean {
    return this.#image.limits.some(({ limit }) => limit.name === name && limit.kind === kind);
  }
}

/** What a total changes: against what the holder carries, else by the lease's own account; whole if the holder is lost. */
function dueTotals({ totals }: RateTotals, stored: ModelHolder | undefined): readonly Amount[] {
  return totals.map(({ name, milli, deltaMilli }) => {
    const carried = stored?.rates?.find((rate) => rate.name === name)?.milli;
    if (carried !== undefined) return { name, milli: Number(milli) - Number(carried) };
    return { name, milli: stored === undefined ? milli : deltaMilli };
  });
}

/** What an ask that may be cut has taken, which must be there; one token where it took nothing. */
function withTaken(entry: AskEntry, result: EntryResult | null): AskEntry {
  const ask = entry.level.asks.find(({ atMost }) => atMost === true);
  if (ask === undefined) return entry;
  const verdicts = result?.kind === 'granted' ? result.answer.verdicts : [];
  const taken = verdicts.find(({ limit }) => limit.name === ask.name)?.requestedMilli;
  const least = Math.min(1_000, Number(ask.milli));
  if (taken !== undefined && (taken < least || taken > ask.milli)) throw new Error(`${taken} is no part of the ask`);
  const milli = taken ?? least;
  const withIt = (amounts: readonly Amount[]): readonly Amount[] =>
    amounts.map((amount) => (amount.name === ask.name ? { ...amount, milli } : amount));
  const { holder } = entry.level;
  const kept = holder && { ...holder, slots: withIt(holder.slots), rates: holder.rates && withIt(holder.rates) };
  return { ...entry, level: { ...entry.level, asks: withIt(entry.level.asks), holder: kept } };
}

function byCut(one: AskEntry, other: AskEntry): number {
  const mayBeCut = ({ level }: AskEntry): number => Number(level.asks.some(({ atMost }) => atMost === true));
  return mayBeCut(one) - mayBeCut(other);
}

function byReserve(one: AskEntry, other: AskEntry): number {
  const largest = ({ level }: AskEntry): number => Math.max(0, ...level.asks.map(({ reserve }) => reserve ?? 0));
  return largest(one) - largest(other);
}
