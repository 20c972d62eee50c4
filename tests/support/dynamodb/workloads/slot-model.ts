import { applyWrite, writeHolds } from '../../../../src/core/bucket/bucket.js';
import { heldSlots } from '../../../../src/core/bucket/held-slots.js';
import type { ConfigVersion } from '../../../../src/core/config/config.js';
import { Limit } from '../../../../src/core/limit.js';
import { shareOf } from '../../../../src/core/bucket/shard.js';
import { decodeHolder, encodeHolder, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { applyShardWrite } from '../../../../src/backends/dynamodb/bucket/shard-write.js';
import { isWhole, newestRules, planSettleAll } from '../../../../src/backends/dynamodb/bucket/settle/settle-all.js';
import {
  applySettlement,
  planSettle,
  type Settlement,
} from '../../../../src/backends/dynamodb/bucket/settle/settle.js';
import { planMerge, planSplit } from '../../../../src/backends/dynamodb/bucket/split.js';
import { planStep, type RepairStep } from '../../../../src/backends/dynamodb/reconciler/plan.js';
import { holderOf, imageOf, KEY, NOW_MS } from '../shard/shard-images.js';

const RPM = Limit.perMinute('rpm', 60_000);
const HOUR_MS = 3_600_000;

/**
 * A bucket of several shards that is changed by the pure functions. Each method is one write, or none if it is refused.
 */
export class SlotModel {
  /** All rules in the order in which they were set: a number of slots, or none. */
  readonly #rules: (number | null)[] = [];
  #shards: readonly ShardImage[];
  /** Slots that were taken from shards without the limit. */
  uncounted = 0;
  #writes = 0;
  #looked: readonly ShardImage[] = [];

  constructor(capacity: number) {
    this.#rules.push(capacity);
    this.#shards = [imageOf(this.#limits(0), { version: this.#version(0), ttlSec: null, baseMs: NOW_MS })];
  }

  get shards(): readonly ShardImage[] {
    return this.#shards;
  }

  /** The capacities by the current rules of the shards. */
  get capacities(): readonly number[] {
    return this.#shards.flatMap(({ limits }) => limits.filter(isSlots).map(({ limit }) => limit.capacity));
  }

  get isUniform(): boolean {
    return this.#shards.every(({ version }) => version.sequence === this.#rules.length);
  }

  get held(): number {
    return this.#shards.reduce((sum, image) => sum + Number(heldSlots(image.holders, 'slots')), 0) / 1_000;
  }

  /** The slots that can be taken now, over all shards. */
  get free(): number {
    return this.#frees.reduce((sum, milli) => sum + Math.max(0, milli), 0) / 1_000;
  }

  /** The sum of free slots and debts. */
  get balance(): number {
    return this.#frees.reduce((sum, milli) => sum + milli, 0) / 1_000;
  }

  configure(capacity: number | null): void {
    this.#rules.push(capacity);
  }

  /** Settles a shard to newer rules, not necessarily the newest: caches of clients differ. */
  settle(pick: number, rules: number): void {
    const image = this.#pick(pick);
    const at = Math.min(rules, this.#rules.length - 1);
    if (at + 1 <= image.version.sequence) return;
    this.#write(
      image,
      this.#settled(image, planSettle(image, { limits: this.#limits(at) }, NOW_MS), this.#version(at)),
    );
  }

  take(pick: number, slots: number): void {
    const image = this.#pick(pick);
    const account = image.limits.find(isSlots);
    if (account === undefined || Number(account.tokensMilli) < slots * 1_000) return;
    this.#hold(image, slots, Number(account.tokensMilli) - slots * 1_000);
  }

  /** A client with older rules takes slots from a shard without the limit: only its holder has them. */
  takeUncounted(pick: number, slots: number): void {
    const image = this.#pick(pick);
    if (image.limits.some(isSlots)) return;
    this.uncounted += slots;
    this.#hold(image, slots, null);
  }

  release(pick: number): void {
    const image = this.#pick(pick);
    const [lease] = image.holders;
    if (lease === undefined) return;
    const holders = new Map(image.holders);
    holders.delete(lease[0]);
    const backMilli = lease[1].slots.reduce((sum, { milli }) => sum + Number(milli), 0);
    const limits = image.limits.map((account) =>
      isSlots(account) ? { ...account, tokensMilli: Number(account.tokensMilli) + backMilli } : account,
    );
    this.#write(image, { ...image, holders, limits });
  }

  split(pick: number): void {
    const image = this.#pick(pick);
    if (this.#shards.length >= 8) return;
    const split = planSplit(image, NOW_MS);
    const half = (shard: number, isNew: boolean): ShardImage => ({
      ...image,
      key: { ...KEY, shard },
      baseMs: split.nextBaseMs,
      shardCount: split.count,
      holders: isNew ? new Map() : image.holders,
      limits: split.limits.map(({ account, movedMilli, keeps }) => ({
        ...account,
        rate: shareOf(account.limit, shard, split.count),
        tokensMilli: isNew ? movedMilli : applyWrite(keeps, account.tokensMilli),
      })),
    });
    this.#write(image, half(image.key.shard, false), half(split.newShard, true));
  }

  merge(pick: number): void {
    const leaves = this.#pick(pick);
    const half = leaves.shardCount / 2;
    const stays = this.#shards.find((image) => image.key.shard === leaves.key.shard - half);
    const merge = stays === undefined ? null : planMerge(stays, leaves, NOW_MS);
    if (stays === undefined || merge === null) return;
    this.#shards = this.#shards.filter((image) => image !== leaves);
    const limits = merge.limits.map(({ account, tokensMilli }) => ({
      ...account,
      rate: shareOf(account.limit, stays.key.shard, merge.count),
      tokensMilli,
    }));
    this.#write(stays, { ...stays, baseMs: merge.nextBaseMs, shardCount: merge.count, limits, ttlSec: merge.ttlSec });
  }

  reset(): void {
    for (const image of this.#shards) {
      const limits = image.limits.map((account) => ({ ...account, tokensMilli: account.rate.capacityMilli }));
      this.#write(image, { ...image, baseMs: image.baseMs + 1, holders: new Map(), limits });
    }
  }

  /** A process or a reconciler reads all shards. */
  look(): void {
    this.#looked = this.#shards;
  }

  /** Settles all shards as they were read, unless a condition refuses it. */
  settleAll(rules: number): void {
    const seen = this.#looked;
    const at = Math.min(rules, this.#rules.length - 1);
    const held = { limits: this.#limits(at), version: this.#version(at) };
    if (seen.length < 2 || !isWhole(seen)) return;
    const { settlements, version } = planSettleAll(seen, newestRules(seen, held) ?? held, NOW_MS);
    const truths = seen.map(({ key }) => this.#shards.find((image) => image.key.shard === key.shard));
    const holds = seen.every((image, place) => {
      const truth = truths[place];
      const isAsSeen = truth !== undefined && truth.baseMs === image.baseMs;
      const { countsHolders = false, limits = [] } = settlements[place] ?? {};
      if (!isAsSeen || (countsHolders && truth.writeId !== image.writeId)) return false;
      return limits.every((one) => one.kind !== 'stays' || writeHolds(one.write, tokensIn(truth, one.limit.name)));
    });
    if (!holds) return;
    for (const [place, settlement] of settlements.entries()) {
      const truth = truths[place]!;
      this.#write(truth, this.#settled(truth, settlement, version));
    }
  }

  /** The steps of the reconciler after all clients have stopped and all shards have the newest rules. */
  reconcile(): void {
    for (let shard = 0; shard < this.#shards.length; shard++) this.settle(shard, this.#rules.length);
    for (let steps = 0; ; steps++) {
      if (steps > 20) throw new Error('The reconciler does not come to an end');
      const step = planStep(this.#shards, { nowMs: NOW_MS, ownWrites: new Map() });
      if (step === null || step.kind === 'unmark') return;
      this.#take(step);
    }
  }

  #take(step: RepairStep): void {
    switch (step.kind) {
      case 'heal': {
        const { image, limits } = step.correction;
        const moves = limits.map(({ name, deltaMilli }) => ({
          name,
          write: { write: 'add', deltaMilli, atLeastMilli: null, atMostMilli: null } as const,
          consumedMilli: 0,
        }));
        const move = { limits: moves, acquires: 0, expired: 0, holders: [], adopts: null, ttlSec: undefined };
        return this.#write(image, applyShardWrite(image, move, ''));
      }
      case 'heal-all':
        this.look();
        return this.settleAll(0);
      case 'settle':
        return this.#write(step.image, this.#settled(step.image, step.settlement, step.version));
      case 'merge':
        return this.merge(this.#shards.indexOf(step.leaves));
      case 'reclaim':
      case 'unmark':
        throw new Error(`The reconciler would ${step.kind}`);
    }
  }

  get #frees(): readonly number[] {
    return this.#shards.flatMap(({ limits }) => limits.filter(isSlots).map(({ tokensMilli }) => Number(tokensMilli)));
  }

  #settled(image: ShardImage, settlement: Settlement, version: ConfigVersion): ShardImage {
    return { ...applySettlement(image, settlement), version };
  }

  #hold(image: ShardImage, slots: number, freeMilli: number | null): void {
    const id = `lease${this.#writes}`;
    const text = encodeHolder(
      holderOf({ slots: [{ name: 'slots', milli: slots * 1_000 }], expiresAtMs: NOW_MS + HOUR_MS }),
    );
    const limits = image.limits.map((account) =>
      isSlots(account) && freeMilli !== null ? { ...account, tokensMilli: freeMilli } : account,
    );
    this.#write(image, { ...image, limits, holders: new Map(image.holders).set(id, decodeHolder(id, text)) });
  }

  #write(before: ShardImage, ...after: readonly ShardImage[]): void {
    const written = after.map((image) => ({ ...image, writeId: `0QCOMhaW${(this.#writes += 1)}`, onSweepList: true }));
    this.#shards = this.#shards.flatMap((image) => (image === before ? written : [image]));
  }

  #pick(pick: number): ShardImage {
    return this.#shards[pick % this.#shards.length]!;
  }

  #limits(rules: number): readonly Limit[] {
    const capacity = this.#rules[rules] ?? null;
    return capacity === null ? [RPM] : [RPM, Limit.concurrent('slots', capacity)];
  }

  #version(rules: number): ConfigVersion {
    return { sequence: rules + 1, openedAtMs: 0 };
  }
}

function tokensIn({ limits }: ShardImage, name: string) {
  return limits.find(({ limit }) => limit.name === name)?.tokensMilli ?? 0;
}

function isSlots({ limit }: { readonly limit: Limit }): boolean {
  return limit.kind === 'concurrent';
}
