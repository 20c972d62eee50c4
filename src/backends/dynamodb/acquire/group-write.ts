import type { LevelRef, Tuning } from '../../../backend.js';
import { BackendUnavailable, type HeadgateError } from '../../../core/errors.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import { correctVerdicts } from '../bucket/correct-verdicts.js';
import { newBucketImage, planCreation } from '../bucket/new-bucket.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import { type Entry, type EntryResult, givesBack } from '../bucket/entries.js';
import { buildCreate } from '../bucket/expressions/create.js';
import type { WriteIds } from '../bucket/expressions/shard-update.js';
import { buildShardWrite } from '../bucket/expressions/write-shard.js';
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
import { giveEnd, needsEnd, settleOne } from '../bucket/settle-one.js';
import { settleShards } from './settle-shards.js';
import type { Item } from '../client/transport.js';
import { createWriteId } from '../bucket/write-id.js';

/** Writes that got no answer are sent again this often: the store is gone, not slow. */
const MAX_RESENDS = 2;

/**
 * Writes a group until each of its members has an answer, and gives back those who must wait for the next write.
 * A refused write shows what stands there: it is planned again from that, with the same `now` and under the same id.
 */
export async function writeGroup(shard: Shard, group: readonly Waiting[]): Promise<readonly Waiting[]> {
  const write = new GroupWrite(shard, group);
  try {
    const deferred = await write.run();
    await write.giveEnd();
    return deferred;
  } catch (error) {
    write.failAll(error);
    return [];
  }
}

interface Sent {
  readonly id: string;
  /** What it was planned on; null: there was no item. */
  readonly seen: ShardImage | null;
  readonly move: ShardWrite;
  readonly results: readonly (EntryResult | null)[];
}

class GroupWrite {
  readonly #shard: Shard;
  readonly #nowMs: EpochMs;
  readonly #deadline: Deadline;
  readonly #tuning: Tuning;
  /** Whether the limits are of this very entity and resource. */
  readonly #lasting: boolean | undefined;
  #waiting: readonly Waiting[];
  #trust: Trust;
  #refusals = 0;
  #resends = 0;
  /** How long the bucket had not been written when this group was, as far as is known. */
  #idleMs = 0;
  /** Writes that got no answer: one of them may have landed. */
  #unanswered: readonly Sent[] = [];
  /** Those whose refund was in the first of them: it is not sent again. With what became of it. */
  readonly #lostRefunds = new Map<Waiting, HeadgateError>();

  constructor(shard: Shard, group: readonly Waiting[]) {
    this.#shard = shard;
    this.#waiting = group;
    this.#nowMs = group.reduce((latest, { entry }) => Math.max(latest, entry.nowMs), 0);
    this.#deadline = group.reduce((latest, { deadline }) => Math.max(latest, deadline), 0);
    this.#tuning = (group[0] as Waiting).tuning;
    this.#lasting = newestLevel(group.map(({ entry }) => entry))?.lasting;
    const somethingComesBack = group.some(({ entry }) => givesBack(entry));
    this.#trust = somethingComesBack ? 'guess' : shard.memory.trustAt(this.#nowMs, this.#tuning.denyCacheMs);
  }

  failAll(error: unknown): void {
    for (const [place, { entry, reject }] of this.#waiting.entries()) {
      const isAtStake = refunds(entry) && this.#unanswered.some(({ results }) => (results[place] ?? null) !== null);
      reject(isAtStake ? new RefundLost(error) : error);
    }
    // A write that got no answer may have landed after all: whoever tries again must begin with what there is.
    if (this.#resends > 0) this.#shard.memory.forget();
  }

  async run(): Promise<readonly Waiting[]> {
    for (;;) {
      const { image } = this.#shard.memory;
      const born = image === null ? this.#bornImage() : null;
      if (image === null && born === null) {
        if (await this.#read()) continue;
        return this.#deliver(this.#waiting.map(() => ({ kind: 'no-shard' })));
      }
      const plan = this.#plan(image ?? (born as ShardImage), image === null);
      // After a write that got no answer, only the store knows whether it landed.
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
          await this.#reclaim(image as ShardImage, plan.move);
          continue;
        case 'write': {
          const results = await this.#write(image, born, plan);
          if (results !== null) return this.#deliver(results);
        }
      }
      if (this.#waiting.length === 0) return [];
    }
  }

  /** A bucket that is to be forgotten some day gets an end. Every caller has an answer by now; what fails is left. */
  async giveEnd(): Promise<void> {
    const { image } = this.#shard.memory;
    if (image === null || !needsEnd(image, this.#lasting, this.#idleMs)) return;
    const answer = await send(this.#shard.table, 'UpdateItem', giveEnd(this.#settling(image)), this.#deadline);
    if (answer.ok) this.#see(answer.output.Attributes);
    else if (answer.failure.kind === 'condition') this.#see(answer.failure.item);
    else this.#shard.memory.forget();
  }

  /** Only shard 0 is ever created, and only for whoever says by which rules. */
  #bornImage(): ShardImage | null {
    const level = newestLevel(this.#entries());
    if (this.#shard.key.shard > 0 || level === null) return null;
    return newBucketImage(this.#shard.key, level, this.#nowMs);
  }

  #plan(image: ShardImage, isBorn: boolean): GroupPlan {
    if (!isBorn && fences(this.#entries(), image.baseMs)) return { kind: 'rebase' };
    const at = {
      nowMs: this.#nowMs,
      trust: isBorn ? ('exact' as const) : this.#trust,
      lifeFactor: this.#tuning.bucketLifeFactor,
      withoutRefunds: this.#unanswered.length > 0,
    };
    const plan = planGroup(image, this.#entries(), at);
    // Nothing to create, and nobody knows whether there is anything: the store must be asked after all.
    const sure = this.#shard.memory.isKnownAbsent(this.#nowMs, this.#tuning.denyCacheMs) || this.#trust === 'exact';
    if (!isBorn || plan.kind !== 'answer') return plan;
    if (!sure) return { kind: 'read' };
    if (!fences(this.#entries(), null)) return plan;
    return {
      kind: 'write',
      move: planCreation(image, this.#nowMs, this.#tuning.bucketLifeFactor),
      results: plan.results,
    };
  }

  #entries(): readonly Entry[] {
    return this.#waiting.map(({ entry }) => entry);
  }

  /** Results once it has landed; null: it did not, and the image says why. */
  async #write(
    image: ShardImage | null,
    born: ShardImage | null,
    { move, results }: Extract<GroupPlan, { readonly kind: 'write' }>,
  ): Promise<readonly (EntryResult | null)[] | null> {
    const { table, target } = this.#shard;
    const own = createWriteId(this.#nowMs, table.random);
    const ids = { own, unanswered: this.#unanswered.map(({ id }) => id) };
    let answer: Answer<'UpdateItem'> | Answer<'PutItem'>;
    let created: ShardImage | null = null;
    if (image === null) {
      created = { ...applyShardWrite(born as ShardImage, move, own), writeUnits: 1 };
      answer = await send(table, 'PutItem', buildCreate(target, created), this.#deadline);
    } else {
      answer = await send(table, 'UpdateItem', buildShardWrite(target, image, move, ids), this.#deadline);
    }
    if (answer.ok) {
      if (image !== null) this.#idleMs = this.#nowMs - writtenAtMs(image);
      this.#see(created ?? answer.output.Attributes);
      const shown = this.#shard.memory.image;
      return image === null || shown === null ? results : correctVerdicts(results, move, image, shown, this.#nowMs);
    }
    return this.#refused(answer.failure, { id: own, seen: image, move, results });
  }

  async #refused(failure: Failure, sent: Sent): Promise<readonly (EntryResult | null)[] | null> {
    if (failure.kind === 'lost') {
      if (failure.unsent !== true) {
        this.#noteUnanswered(sent, failure.error);
        // It may have landed: then the image is no longer what the store has.
        this.#trust = 'guess';
      }
      if (this.#resends++ >= MAX_RESENDS) throw failure.error;
      await this.#pause(this.#resends, failure.error);
      return null;
    }
    if (failure.kind === 'condition') {
      this.#see(failure.item);
      const { image } = this.#shard.memory;
      // A client of the caller's may have sent it twice by itself, and shows the second answer only.
      if (image?.writeId === sent.id) return sent.results;
      const proven = this.#landed(image);
      if (proven !== null) return proven;
      this.#answerReleased([...this.#unanswered, sent]);
      if (this.#waiting.length === 0) return [];
    }
    await this.#afterRefusal(failure);
    return null;
  }

  /** What stands in the way of any write: other writers, or too many of them. */
  async #afterRefusal(failure: Failure): Promise<void> {
    if (failure.kind === 'throttled' && failure.hotKey) this.#shard.sayHot(this.#nowMs);
    if (failure.kind !== 'condition' && failure.kind !== 'conflict' && failure.kind !== 'throttled') {
      throw errorOf(failure, 'writing a bucket');
    }
    this.#refusals += 1;
    const error = failure.kind === 'throttled' ? failure.error : null;
    if (this.#refusals > this.#tuning.maxRetries) this.#giveUpAsks(error);
    // The first refusal was a wrong guess; from the second on, others are writing.
    if (failure.kind !== 'condition' || this.#refusals > 1) await this.#pause(this.#refusals, error);
  }

  /** Asks come again; corrections must reach the store, and go on until their time is over. */
  #giveUpAsks(error: unknown): void {
    const stays = this.#waiting.map(({ entry }) => entry.kind !== 'ask');
    for (const { entry, resolve, reject } of this.#waiting) {
      if (entry.kind !== 'ask') continue;
      if (error === null) resolve({ kind: 'contended' });
      else reject(error);
    }
    this.#keep(stays);
  }

  #keep(stays: readonly boolean[]): void {
    this.#waiting = this.#waiting.filter((_, place) => stays[place]);
    this.#unanswered = this.#unanswered.map((sent) => ({
      ...sent,
      results: sent.results.filter((_, place) => stays[place]),
    }));
  }

  /** A holder that is gone speaks for its own lease only: another release of that lease may have taken it. */
  #answerReleased(sents: readonly Sent[]): void {
    const { image } = this.#shard.memory;
    const results = this.#waiting.map(({ entry }, place) => {
      const proof = sents.find((sent) => image !== null && showsReleaseOf(image, entry, sent.move, sent.seen));
      return proof?.results[place] ?? null;
    });
    for (const [place, result] of results.entries()) if (result !== null) this.#waiting[place]?.resolve(result);
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
    // Later sendings leave refunds out: whose refund is at stake stands in the first.
    if (this.#unanswered.length === 0) {
      for (const [place, waiting] of this.#waiting.entries()) {
        const isIn = (sent.results[place] ?? null) !== null;
        if (isIn && refundsWithoutHolder(waiting.entry, sent.move)) this.#lostRefunds.set(waiting, error);
      }
    }
    this.#unanswered = [...this.#unanswered, sent];
    for (const [place, waiting] of this.#waiting.entries()) {
      waiting.doubt = doubtOf(waiting.entry, sent.results[place] ?? null, sent.seen) ?? waiting.doubt;
    }
  }

  /** The results of a write that got no answer, if this image proves that it landed. */
  #landed(image: ShardImage | null): readonly (EntryResult | null)[] | null {
    if (image === null || this.#unanswered.length === 0) return null;
    const proven = this.#unanswered.find(({ id, move }) => id === image.writeId || showsAdditionOf(image, move));
    if (proven === undefined) return null;
    const isCertain = proven.id === image.writeId || this.#unanswered.length === 1;
    if (isCertain && proven === this.#unanswered[0]) this.#lostRefunds.clear();
    // A holder may have stood in several of them: then only what all of them say is certain, the rest asks again.
    return proven.results.map((result, place) =>
      isCertain || this.#unanswered.every(({ results }) => results[place]?.kind === result?.kind) ? result : null,
    );
  }

  /** To the rules of a level, or to its own at a new base. */
  async #settle(image: ShardImage, level: LevelRef | null): Promise<void> {
    if (level !== null && image.shardCount > 1 && changesSlots(image, level) && (await this.#settleAll(level))) return;
    const input = settleOne(this.#settling(image), level);
    await this.#maintain(await send(this.#shard.table, 'UpdateItem', input, this.#deadline));
  }

  #settling(image: ShardImage) {
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

  async #reclaim(image: ShardImage, move: ShardWrite): Promise<void> {
    const { table, target } = this.#shard;
    const input = buildShardWrite(target, image, move, this.#freshIds());
    await this.#maintain(await send(table, 'UpdateItem', input, this.#deadline));
  }

  #freshIds(): WriteIds {
    return { own: createWriteId(this.#nowMs, this.#shard.table.random), unanswered: [] };
  }

  /** These may be sent again: what they require is no longer so once they have landed. */
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

  /** False: there is no such item. */
  async #read(): Promise<boolean> {
    const { table, target, key, memory } = this.#shard;
    this.#see(await readItem(table, buildShardKey(target.ns, key), this.#deadline));
    return memory.image !== null;
  }

  /** From here on the image is what the store has just shown. */
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
    for (const [place, waiting] of this.#waiting.entries()) {
      const result = results[place] ?? null;
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
