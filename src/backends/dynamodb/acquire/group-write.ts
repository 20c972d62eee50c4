import type { LevelRef, Tuning } from '../../../backend.js';
import { BackendUnavailable, type HeadgateError } from '../../../core/errors.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import { correctVerdicts } from '../bucket/correct-verdicts.js';
import { newBucketImage, planCreation } from '../bucket/new-bucket.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import { type Entry, type EntryResult, givesBack } from '../bucket/entries.js';
import { buildCreate } from '../bucket/writes/create.js';
import type { WriteIds } from '../bucket/writes/shard-update.js';
import { buildShardWrite } from '../bucket/writes/write-shard.js';
import { errorOf, type Failure } from '../client/failures.js';
import { requireOwn } from '../table/foreign-record.js';
import { type GroupPlan, newestLevel, planGroup, type Trust } from '../bucket/plan-group.js';
import { decodeShard, isImage, type ShardImage, writtenAtMs } from '../table/items.js';
import { buildShardKey } from '../table/keys.js';
import { applyShardWrite, type ShardWrite } from '../bucket/shard-write.js';
import { refunds, refundsWithoutHolder, showsAdditionOf, showsReleaseOf } from '../bucket/landed-writes.js';
import { RefundLost } from './refund-lost.js';
import type { Shard, Waiting } from './shard.js';
import { doubtOf, fences } from '../bucket/revocation.js';
import { type Answer, readItem, send } from '../client/requests.js';
import { changesSlots } from '../bucket/settle-all.js';
import { addTtl, needsTtl, settleOne } from '../bucket/settle-one.js';
import { settleShards } from './settle-shards.js';
import type { Item } from '../client/transport.js';
import { createWriteId } from '../bucket/write-id.js';

/** How often a write that got no answer is sent again. Beyond this the store is out, not slow. */
const MAX_RESENDS = 2;

/**
 * Writes a group until each of its entries has an answer, and returns the entries that must wait for the next write. A
 * refused write returns the stored item. The group is planned again from that item, with the same `now` and a new write
 * id.
 */
export async function writeGroup(shard: Shard, group: readonly Waiting[]): Promise<readonly Waiting[]> {
  const write = new GroupWrite(shard, group);
  try {
    const deferred = await write.run();
    await write.addTtl();
    return deferred;
  } catch (error) {
    write.failAll(error);
    return [];
  }
}

interface Sent {
  readonly id: string;
  /** The image that the write was planned on. null: there was no item. */
  readonly seen: ShardImage | null;
  readonly write: ShardWrite;
  readonly results: readonly (EntryResult | null)[];
}

class GroupWrite {
  readonly #shard: Shard;
  readonly #nowMs: EpochMs;
  readonly #deadline: Deadline;
  readonly #tuning: Tuning;
  /** Whether the limits are set for exactly this entity and resource: such a bucket has no ttl. */
  readonly #lasting: boolean | undefined;
  #waiting: readonly Waiting[];
  #trust: Trust;
  #refusals = 0;
  #resends = 0;
  /** How long the bucket had not been written before this group, as far as the image shows. */
  #idleMs = 0;
  /** Writes that got no answer. One of them may have landed. */
  #unanswered: readonly Sent[] = [];
  /** The entries whose refund was in the first unanswered write, with its error. Their refund is not sent again. */
  readonly #lostRefunds = new Map<Waiting, HeadgateError>();

  constructor(shard: Shard, group: readonly Waiting[]) {
    this.#shard = shard;
    this.#waiting = group;
    this.#nowMs = group.reduce((latest, { entry }) => Math.max(latest, entry.nowMs), 0);
    this.#deadline = group.reduce((latest, { deadline }) => Math.max(latest, deadline), 0);
    this.#tuning = (group[0] as Waiting).tuning;
    this.#lasting = newestLevel(group.map(({ entry }) => entry))?.lasting;
    const includesRefund = group.some(({ entry }) => givesBack(entry));
    this.#trust = includesRefund ? 'guess' : shard.memory.trustAt(this.#nowMs, this.#tuning.denyCacheMs);
  }

  failAll(error: unknown): void {
    for (const [index, { entry, reject }] of this.#waiting.entries()) {
      const mayHaveRefunded =
        refunds(entry) && this.#unanswered.some(({ results }) => (results[index] ?? null) !== null);
      reject(mayHaveRefunded ? new RefundLost(error) : error);
    }
    // A write that got no answer may have landed, so the next group must start from a read.
    if (this.#resends > 0) this.#shard.memory.forget();
  }

  async run(): Promise<readonly Waiting[]> {
    for (;;) {
      const { image } = this.#shard.memory;
      const newImage = image === null ? this.#newImage() : null;
      if (image === null && newImage === null) {
        if (await this.#read()) continue;
        return this.#deliver(this.#waiting.map(() => ({ kind: 'no-shard' })));
      }
      const plan = this.#plan(image ?? (newImage as ShardImage), image === null);
      // After a write that got no answer, only a read shows whether it landed.
      if (plan.kind === 'read' || (plan.kind === 'answer' && this.#unanswered.length > 0 && this.#trust !== 'exact')) {
        await this.#read();
        const proven = this.#landed(this.#shard.memory.image);
        if (proven !== null) return this.#deliver(proven);
        this.#answerReleased(this.#unanswered);
        if (this.#waiting.length === 0) return [];
        continue;
      }
      switch (plan.kind) {
        case 'answer':
          return this.#deliver(plan.results);
        case 'settle':
          await this.#settle(image as ShardImage, plan.level);
          continue;
        case 'rebase':
          await this.#settle(image as ShardImage, null);
          continue;
        case 'reclaim':
          await this.#reclaim(image as ShardImage, plan.write);
          continue;
        case 'write': {
          const results = await this.#write(image, newImage, plan);
          if (results !== null) return this.#deliver(results);
        }
      }
      if (this.#waiting.length === 0) return [];
    }
  }

  /** Adds a ttl to a bucket that needs one. Every caller has its answer by now, so a failure is ignored. */
  async addTtl(): Promise<void> {
    const { image } = this.#shard.memory;
    if (image === null || !needsTtl(image, this.#lasting, this.#idleMs)) return;
    const answer = await send(this.#shard.table, 'UpdateItem', addTtl(this.#settleOptions(image)), this.#deadline);
    if (answer.ok) this.#see(answer.output.Attributes);
    else if (answer.failure.kind === 'condition') this.#see(answer.failure.item);
    else this.#shard.memory.forget();
  }

  /** null: only shard 0 is ever created, and only for an entry that brings the limits. */
  #newImage(): ShardImage | null {
    const level = newestLevel(this.#entries());
    if (this.#shard.key.shard > 0 || level === null) return null;
    return newBucketImage(this.#shard.key, level, this.#nowMs);
  }

  #plan(image: ShardImage, isNew: boolean): GroupPlan {
    if (!isNew && fences(this.#entries(), image.baseMs)) return { kind: 'rebase' };
    const at = {
      nowMs: this.#nowMs,
      trust: isNew ? ('exact' as const) : this.#trust,
      lifeFactor: this.#tuning.bucketLifeFactor,
      withoutRefunds: this.#unanswered.length > 0,
    };
    const plan = planGroup(image, this.#entries(), at);
    // There is nothing to create, and it is not known whether the item exists: a read must tell.
    const sure = this.#shard.memory.isKnownAbsent(this.#nowMs, this.#tuning.denyCacheMs) || this.#trust === 'exact';
    if (!isNew || plan.kind !== 'answer') return plan;
    if (!sure) return { kind: 'read' };
    if (!fences(this.#entries(), null)) return plan;
    return {
      kind: 'write',
      write: planCreation(image, this.#nowMs, this.#tuning.bucketLifeFactor),
      results: plan.results,
    };
  }

  #entries(): readonly Entry[] {
    return this.#waiting.map(({ entry }) => entry);
  }

  /** The results, if the write landed. null: it did not, and the image now shows why. */
  async #write(
    image: ShardImage | null,
    newImage: ShardImage | null,
    { write, results }: Extract<GroupPlan, { readonly kind: 'write' }>,
  ): Promise<readonly (EntryResult | null)[] | null> {
    const { table, target } = this.#shard;
    const own = createWriteId(this.#nowMs, table.random);
    const ids = { own, unanswered: this.#unanswered.map(({ id }) => id) };
    let answer: Answer<'UpdateItem'> | Answer<'PutItem'>;
    let created: ShardImage | null = null;
    if (image === null) {
      created = { ...applyShardWrite(newImage as ShardImage, write, own), writeUnits: 1 };
      answer = await send(table, 'PutItem', buildCreate(target, created), this.#deadline);
    } else {
      answer = await send(table, 'UpdateItem', buildShardWrite(target, image, write, ids), this.#deadline);
    }
    if (answer.ok) {
      if (image !== null) this.#idleMs = this.#nowMs - writtenAtMs(image);
      this.#see(created ?? answer.output.Attributes);
      const shown = this.#shard.memory.image;
      return image === null || shown === null ? results : correctVerdicts(results, write, image, shown, this.#nowMs);
    }
    return this.#refused(answer.failure, { id: own, seen: image, write, results });
  }

  async #refused(failure: Failure, sent: Sent): Promise<readonly (EntryResult | null)[] | null> {
    if (failure.kind === 'lost') {
      if (failure.unsent !== true) {
        this.#noteUnanswered(sent, failure.error);
        // It may have landed. Then the stored item differs from the image.
        this.#trust = 'guess';
      }
      if (this.#resends++ >= MAX_RESENDS) throw failure.error;
      await this.#pause(this.#resends, failure.error);
      return null;
    }
    if (failure.kind === 'condition') {
      this.#see(failure.item);
      const { image } = this.#shard.memory;
      // The caller's own SDK client may have sent the write twice, and returns only the second answer.
      if (image?.writeId === sent.id) return sent.results;
      const proven = this.#landed(image);
      if (proven !== null) return proven;
      this.#answerReleased([...this.#unanswered, sent]);
      if (this.#waiting.length === 0) return [];
    }
    await this.#afterRefusal(failure);
    return null;
  }

  /** Handles a refusal that any write can meet: other writers, or throttling. */
  async #afterRefusal(failure: Failure): Promise<void> {
    if (failure.kind === 'throttled' && failure.hotKey) this.#shard.markHot(this.#nowMs);
    if (failure.kind !== 'condition' && failure.kind !== 'conflict' && failure.kind !== 'throttled') {
      throw errorOf(failure, 'writing a bucket');
    }
    this.#refusals += 1;
    const error = failure.kind === 'throttled' ? failure.error : null;
    if (this.#refusals > this.#tuning.maxRetries) this.#giveUpAsks(error);
    // The first refused condition means a stale image. From the second on, other writers are active.
    if (failure.kind !== 'condition' || this.#refusals > 1) await this.#pause(this.#refusals, error);
  }

  /**
   * Gives up the asks, which callers can repeat. Corrections must reach the store and are retried until their deadline.
   */
  #giveUpAsks(error: unknown): void {
    const kept = this.#waiting.map(({ entry }) => entry.kind !== 'ask');
    for (const { entry, resolve, reject } of this.#waiting) {
      if (entry.kind !== 'ask') continue;
      if (error === null) resolve({ kind: 'contended' });
      else reject(error);
    }
    this.#keep(kept);
  }

  #keep(kept: readonly boolean[]): void {
    this.#waiting = this.#waiting.filter((_, index) => kept[index]);
    this.#unanswered = this.#unanswered.map((sent) => ({
      ...sent,
      results: sent.results.filter((_, index) => kept[index]),
    }));
  }

  /**
   * Answers the releases that an image shows to have landed. A missing holder proves that for its own lease only:
   * another release of the same lease may have removed it.
   */
  #answerReleased(sents: readonly Sent[]): void {
    const { image } = this.#shard.memory;
    const results = this.#waiting.map(({ entry }, index) => {
      const proof = sents.find((sent) => image !== null && showsReleaseOf(image, entry, sent.write, sent.seen));
      return proof?.results[index] ?? null;
    });
    for (const [index, result] of results.entries()) if (result !== null) this.#waiting[index]?.resolve(result);
    this.#keep(results.map((result) => result === null));
  }

  async #pause(attempt: number, error: unknown): Promise<void> {
    const waitMs = backOffMs(attempt, this.#shard.table.random);
    if (timeLeftMs(this.#deadline) <= waitMs) {
      throw error ?? new BackendUnavailable('Writing a bucket: too many writers at once', 'contended');
    }
    await pause(waitMs);
  }

  #noteUnanswered(sent: Sent, error: HeadgateError): void {
    // Later writes of this group leave refunds out, so only the first one can contain them.
    if (this.#unanswered.length === 0) {
      for (const [index, waiting] of this.#waiting.entries()) {
        const isIn = (sent.results[index] ?? null) !== null;
        if (isIn && refundsWithoutHolder(waiting.entry, sent.write)) this.#lostRefunds.set(waiting, error);
      }
    }
    this.#unanswered = [...this.#unanswered, sent];
    for (const [index, waiting] of this.#waiting.entries()) {
      waiting.doubt = doubtOf(waiting.entry, sent.results[index] ?? null, sent.seen) ?? waiting.doubt;
    }
  }

  /** The results of an unanswered write, if this image proves that it landed. */
  #landed(image: ShardImage | null): readonly (EntryResult | null)[] | null {
    if (image === null || this.#unanswered.length === 0) return null;
    const proven = this.#unanswered.find(({ id, write }) => id === image.writeId || showsAdditionOf(image, write));
    if (proven === undefined) return null;
    const isCertain = proven.id === image.writeId || this.#unanswered.length === 1;
    if (isCertain && proven === this.#unanswered[0]) this.#lostRefunds.clear();
    // Several of the writes may have added the same holder. Then only results that all of them agree on are certain,
    // and the other entries are planned again.
    return proven.results.map((result, index) =>
      isCertain || this.#unanswered.every(({ results }) => results[index]?.kind === result?.kind) ? result : null,
    );
  }

  /** Settles the shard to the rules of a level. null: to its own rules, at a new base. */
  async #settle(image: ShardImage, level: LevelRef | null): Promise<void> {
    if (level !== null && image.shardCount > 1 && changesSlots(image, level) && (await this.#settleAll(level))) return;
    const input = settleOne(this.#settleOptions(image), level);
    await this.#maintain(await send(this.#shard.table, 'UpdateItem', input, this.#deadline));
  }

  #settleOptions(image: ShardImage) {
    const { bucketLifeFactor: lifeFactor } = this.#tuning;
    return { target: this.#shard.target, image, nowMs: this.#nowMs, lifeFactor, ids: this.#freshIds() };
  }

  /** False: this shard must be settled alone. */
  async #settleAll(level: LevelRef): Promise<boolean> {
    const { table, target } = this.#shard;
    const createIds = (): WriteIds => this.#freshIds();
    const all = { table, target, level, nowMs: this.#nowMs, deadline: this.#deadline, createIds };
    if (!(await settleShards(all))) return false;
    await this.#read();
    return true;
  }

  async #reclaim(image: ShardImage, write: ShardWrite): Promise<void> {
    const { table, target } = this.#shard;
    const input = buildShardWrite(target, image, write, this.#freshIds());
    await this.#maintain(await send(table, 'UpdateItem', input, this.#deadline));
  }

  #freshIds(): WriteIds {
    return { own: createWriteId(this.#nowMs, this.#shard.table.random), unanswered: [] };
  }

  /** Settlements and reclaims may be sent again: once they have landed, their condition no longer holds. */
  async #maintain(answer: Answer<'UpdateItem'>): Promise<void> {
    if (answer.ok) {
      this.#see(answer.output.Attributes);
      return;
    }
    const { failure } = answer;
    if (failure.kind === 'condition') this.#see(failure.item);
    if (failure.kind !== 'lost') return this.#afterRefusal(failure);
    if (this.#resends++ >= MAX_RESENDS) throw failure.error;
    await this.#pause(this.#resends, failure.error);
  }

  /** False: the item does not exist. */
  async #read(): Promise<boolean> {
    const { table, target, key, memory } = this.#shard;
    this.#see(await readItem(table, buildShardKey(target.ns, key), this.#deadline));
    return memory.image !== null;
  }

  /** Caches what the store has just returned, and treats it as exact. */
  #see(shown: Item | ShardImage | undefined): void {
    const { memory, table } = this.#shard;
    const known = newestLevel(this.#entries())?.limits ?? (memory.image === null ? [] : limitsOf(memory.image));
    const image =
      shown === undefined
        ? null
        : isImage(shown)
          ? shown
          : decodeShard(requireOwn(table, shown), known, this.#shard.key);
    memory.keep(image, this.#nowMs);
    this.#trust = 'exact';
  }

  #deliver(results: readonly (EntryResult | null)[]): readonly Waiting[] {
    const deferred: Waiting[] = [];
    for (const [index, waiting] of this.#waiting.entries()) {
      const result = results[index] ?? null;
      const loss = this.#lostRefunds.get(waiting);
      if (loss !== undefined) waiting.reject(new RefundLost(loss));
      else if (result === null) deferred.push(waiting);
      else waiting.resolve(result);
    }
    this.#waiting = [];
    return deferred;
  }
}

function limitsOf({ limits }: ShardImage): readonly Limit[] {
  return limits.map(({ limit }) => limit);
}
