import type { Amount, AskedAmount, PortablePart } from '../../../src/core/bucket/decide.js';
import { deltasOf, type RateChange } from '../../../src/core/bucket/holder-rules.js';
import type { AskEntry, ChangeEntry, Entry, EntryResult } from '../../../src/backends/dynamodb/bucket/group/entries.js';
import { compareConfig } from '../../../src/core/config/config.js';
import { closedState, type ModelHolder, type ModelOperation, operateModel } from './sequential-portable.js';
import type { ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { worthOf } from '../../oracle/model.js';

/** The expected answer of each entry. */
export type Answer =
  | { readonly kind: 'granted' | 'denied'; readonly left: ReadonlyMap<string, bigint> }
  | { readonly kind: 'id-taken' | 'unheld' | 'crowded' | 'ended' }
  | { readonly kind: 'operated'; readonly part: PortablePart | null }
  | { readonly kind: 'done'; readonly holderLost: boolean }
  | { readonly kind: 'extended'; readonly found: boolean };

/**
 * One shard as a plain account that runs one entry after the other, in numbers of any size. It has the stored state,
 * and shares no arithmetic with the planning that it checks. Asks come first, those with less reserve before the
 * others and otherwise in the order of their arrival, those that may be cut last, without those that do not fit; then
 * debits; then refunds. A refused ask first reclaims expired holders.
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
      truth.limits.map(({ limit, rate, tokensMilli }) => [
        limit.name,
        limit.kind === 'unlimited' ? 0n : worthOf(rate, tokensMilli, truth.baseMs, nowMs),
      ]),
    );
    this.holders = new Map(
      [...truth.holders].map(([id, { expiresAtMs, slots, rates, portable }]) => [
        id,
        { expiresAtMs, slots, rates, ...(portable === undefined ? {} : { portable }) },
      ]),
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
    const byReserve = (one: AskEntry, other: AskEntry): number =>
      this.#largestReserve(one) - this.#largestReserve(other);
    for (const entry of asks.toSorted(byReserve).toSorted(byCut)) {
      answers.set(entry, this.#ask(withTaken(entry, results[entries.indexOf(entry)] ?? null)));
    }
    // Debits come before refunds, because a refund above the brim is lost even if a debit follows.
    const refunds: (readonly [string, bigint])[] = [];
    for (const entry of now) {
      if (entry.kind === 'change') answers.set(entry, this.#change(entry, refunds));
      if (entry.kind === 'operation') answers.set(entry, this.#operate(entry.level, entry.leaseId, refunds));
      if (entry.kind === 'extend') answers.set(entry, this.#extend(entry.leaseId, entry.expiresAtMs));
    }
    for (const [name, milli] of refunds) this.#move(name, milli);
    return entries.map((entry) => answers.get(entry) ?? null);
  }

  #ask(entry: AskEntry): Answer {
    const { level, leaseId, counts, shadowsAside, dryRun } = entry;
    const left = new Map(this.tokens);
    if ((this.#image.pause?.endMs ?? 0) > this.#nowMs) return { kind: 'denied', left };
    const asks = this.#judged(entry).filter(({ name }) => left.has(name));
    const isShort = ({ name, milli, reserve, shadow }: AskedAmount): boolean =>
      (shadow === true && shadowsAside === true) ||
      (this.#kindOf(name) !== 'unlimited' && left.get(name)! < BigInt(milli) + this.#reserved(name, reserve));
    if (asks.some((ask) => ask.shadow !== true && isShort(ask))) return { kind: 'denied', left };
    const taken = asks.filter((ask) => !isShort(ask));
    if (this.#lacksHolder(entry, asks)) return { kind: 'unheld' };
    if (level.holder?.portable !== undefined && this.holders.size >= 1_000) return { kind: 'crowded' };
    if (dryRun === true) return { kind: 'granted', left };
    if (level.holder !== null && leaseId !== null) {
      if (this.holders.has(leaseId)) return { kind: 'id-taken' };
      const isTaken = ({ name }: Amount): boolean => taken.some((ask) => ask.name === name);
      const { slots, rates, portable } = level.holder;
      // A holder that only gives slots back keeps those of limits that the bucket lacks: they are found nowhere.
      const isHeld = (amount: Amount): boolean => isTaken(amount) || !asks.some(({ name }) => name === amount.name);
      const isConsumed = (amount: Amount): boolean => isTaken(amount) && this.#isConsumed(amount.name);
      this.holders.set(leaseId, {
        ...level.holder,
        slots: slots.filter(isHeld),
        rates: rates?.filter(isConsumed) ?? null,
        ...(portable === undefined ? {} : { portable: { ...portable, taken: portable.taken.filter(isConsumed) } }),
      });
    }
    for (const { name, milli } of taken) this.#move(name, -BigInt(milli));
    // A shadow that is short counts the ask.
    for (const { name, milli } of asks.filter(isShort)) {
      if (this.#isConsumed(name)) this.#count(name, BigInt(milli));
    }
    if (counts) this.acquires += 1;
    return { kind: 'granted', left };
  }

  /** On one shard of several a shadow refuses, unless the ask says otherwise: another shard may have room. */
  #judged({ level, passesShadows, shadowsAside }: AskEntry): readonly AskedAmount[] {
    if (this.#image.shardCount === 1 || passesShadows === true || shadowsAside === true) return level.asks;
    return level.asks.map(({ shadow: _shadow, ...ask }) => ask);
  }

  /** The bucket has slots where the config of the ask, which is older, has none. */
  #lacksHolder({ level }: AskEntry, asks: readonly AskedAmount[]): boolean {
    if (compareConfig(this.#image, level) !== 'reread') return false;
    const held = level.holder?.slots ?? [];
    return asks.some(
      ({ name, milli }) =>
        milli > 0 && this.#kindOf(name) === 'concurrent' && !held.some((amount) => amount.name === name),
    );
  }

  /** A limit that the bucket lacks is not asked for, and reserves nothing. */
  #largestReserve({ level }: AskEntry): number {
    const known = level.asks.filter(({ name }) => this.tokens.has(name));
    return Math.max(0, ...known.map(({ reserve }) => reserve ?? 0));
  }

  /** What must stay: a share of the capacity, in whole slots where the limit has slots. Divided over the shards. */
  #reserved(name: string, reserve = 0): bigint {
    const { key, limits, shardCount } = this.#image;
    const { limit } = limits.find((account) => account.limit.name === name)!;
    const milli = (BigInt(limit.capacityMilli) * BigInt(Math.round(reserve * 1_000))) / 1_000n;
    const unit = limit.kind === 'rate' ? 1n : 1_000n;
    const units = (milli + unit - 1n) / unit;
    const isFirst = BigInt(key.shard) < units % BigInt(shardCount);
    return (units / BigInt(shardCount) + (isFirst ? 1n : 0n)) * unit;
  }

  #change(
    { level, leaseId, uncounts, onlyIfHeld, holderText }: ChangeEntry,
    refunds: (readonly [string, bigint])[],
  ): Answer {
    const stored = level.holder === 'none' ? undefined : this.holders.get(leaseId);
    const holderLost = level.holder !== 'none' && stored === undefined;
    // A group changes a holder once, so it is still as it was.
    const isOther = holderText !== undefined && this.#image.holders.get(leaseId)?.text !== holderText;
    if (onlyIfHeld === true && (holderLost || isOther || (stored !== undefined && closedState(stored) !== null))) {
      return { kind: 'done', holderLost: true };
    }
    for (const { name, milli } of level.refundsOnExpiry === true ? dueWhole(level, stored) : deltasOf(level)) {
      if (!this.#isConsumed(name)) continue;
      if (milli > 0) this.#move(name, -BigInt(milli));
      // It was counted and never taken.
      else if (level.limits.some((limit) => limit.name === name && limit.kind === 'unlimited')) {
        this.#count(name, BigInt(milli));
      } else refunds.push([name, -BigInt(milli)]);
    }
    if (stored !== undefined && level.holder === 'release') {
      this.holders.delete(leaseId);
      refunds.push(...this.#partsOf(stored.slots, 'concurrent'));
    } else if (stored !== undefined && stored.rates !== null && level.refundsOnExpiry === true) {
      const rates = level.amounts.filter(({ name }) => this.#isConsumed(name));
      this.holders.set(leaseId, { ...stored, rates: rates.map(({ name, toMilli }) => ({ name, milli: toMilli })) });
    }
    if (uncounts) this.acquires -= 1;
    return { kind: 'done', holderLost };
  }

  #operate(level: ModelOperation, leaseId: string, refunds: (readonly [string, bigint])[]): Answer {
    const stored = this.holders.get(leaseId);
    const effect = operateModel(stored, level, (name) => this.#isConsumed(name), this.#nowMs);
    if (effect === 'ended') return { kind: 'ended' };
    for (const { name, milli } of effect.due) {
      if (!this.#isConsumed(name)) continue;
      if (milli > 0) this.#move(name, -BigInt(milli));
      else if (level.limits.some((limit) => limit.name === name && limit.kind === 'unlimited')) {
        this.#count(name, BigInt(milli));
      } else refunds.push([name, -BigInt(milli)]);
    }
    refunds.push(...this.#partsOf(effect.slotsBack, 'concurrent'));
    if (effect.holder === null) return { kind: 'operated', part: null };
    this.holders.set(leaseId, effect.holder);
    return { kind: 'operated', part: effect.holder.portable ?? null };
  }

  #extend(leaseId: string, expiresAtMs: number): Answer {
    const stored = this.holders.get(leaseId);
    if (stored !== undefined && closedState(stored) !== null) return { kind: 'ended' };
    if (stored !== undefined) this.holders.set(leaseId, { ...stored, expiresAtMs });
    return { kind: 'extended', found: stored !== undefined };
  }

  #reclaim(ids: readonly string[]): void {
    for (const id of ids) {
      const holder = this.holders.get(id)!;
      const { expiresAtMs, slots, rates } = holder;
      if (expiresAtMs > this.#nowMs) throw new Error(`${id} lives`);
      this.holders.delete(id);
      if (closedState(holder) === null) this.expired += 1;
      for (const [name, milli] of this.#partsOf(slots, 'concurrent')) this.#move(name, milli);
      for (const { name, milli } of rates ?? []) if (this.#isConsumed(name)) this.#move(name, BigInt(milli));
    }
  }

  #partsOf(amounts: readonly Amount[], kind: 'concurrent'): (readonly [string, bigint])[] {
    return amounts.filter(({ name }) => this.#kindOf(name) === kind).map(({ name, milli }) => [name, BigInt(milli)]);
  }

  #move(name: string, milli: bigint): void {
    if (this.#isConsumed(name)) this.#count(name, -milli);
    if (this.#kindOf(name) === 'unlimited') return;
    const { rate } = this.#image.limits.find(({ limit }) => limit.name === name)!;
    const after = this.tokens.get(name)! + milli;
    const capacity = BigInt(rate.capacityMilli);
    this.tokens.set(name, rate.refillPeriodMs !== 0 && after > capacity ? capacity : after);
  }

  #count(name: string, milli: bigint): void {
    this.consumed.set(name, (this.consumed.get(name) ?? 0n) + milli);
  }

  #kindOf(name: string): 'rate' | 'concurrent' | 'unlimited' | undefined {
    return this.#image.limits.find(({ limit }) => limit.name === name)?.limit.kind;
  }

  #isConsumed(name: string): boolean {
    const kind = this.#kindOf(name);
    return kind === 'rate' || kind === 'unlimited';
  }
}

/** What changes against what the holder carries, else by the lease's own account; the whole if the holder is lost. */
function dueWhole({ amounts }: RateChange, stored: ModelHolder | undefined): readonly Amount[] {
  return amounts.map(({ name, fromMilli, toMilli }) => {
    const carried = stored?.rates?.find((rate) => rate.name === name)?.milli;
    const before = stored === undefined ? 0 : (carried ?? fromMilli);
    return { name, milli: Number(toMilli) - Number(before) };
  });
}

/** What an ask that may be cut has taken, which must be there; one token where it took nothing. */
function withTaken(entry: AskEntry, result: EntryResult | null): AskEntry {
  const ask = entry.level.asks.find(({ atMost }) => atMost === true);
  if (ask === undefined) return entry;
  const verdicts = result?.kind === 'granted' ? result.answer.verdicts : [];
  const taken = verdicts.find(({ limit }) => limit.name === ask.name)?.requestedMilli;
  // The bucket has no such limit.
  if (result?.kind === 'granted' && taken === undefined) return entry;
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
