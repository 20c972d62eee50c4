import type { LevelRef } from '../../backend.js';
import type { Clock } from '../../clock.js';
import type { Amount, LimitStatus } from '../../core/bucket/decide.js';
import { buildBucketKey } from '../../core/identifiers.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import { type EpochMs, MILLI } from '../../core/units.js';
import { bucketResource } from '../acquire/levels.js';
import type { AcquireRequest } from '../acquire/request.js';
import { WaitingLine } from './waiting-line.js';

/** A call that waits, including the time of its first ask. */
interface WaitingCall {
  /** The limiter that received the call. */
  readonly owner: object;
  /** Removes the call from its line and returns that line. */
  leaveLine(): WaitingLine | null;
  /** Asks now if the call waits for the end of a pause. */
  askIfPaused(): void;
  /** Ends the wait: the call rejects with the reason. */
  leave(reason: unknown): void;
}

/** The part of a decision that the lines use. */
interface LineAnswer {
  readonly granted: boolean;
  readonly statuses: readonly LimitStatus[];
}

/** The calls of this process that wait, in one namespace: one line for each limit of a bucket that refused. */
export class WaitingLines {
  readonly #clock: Required<Clock>;
  readonly #random: () => number;
  /** By the name of the limit and the key of the bucket. */
  readonly #lines = new TwoKeyMap<WaitingLine>();
  readonly #waiting = new Set<WaitingCall>();
  #entered = 0;

  constructor(clock: Required<Clock>, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Returns the number of the call in the order of arrival. */
  enter(waiting: WaitingCall): number {
    this.#waiting.add(waiting);
    return (this.#entered += 1);
  }

  exit(waiting: WaitingCall): void {
    this.#waiting.delete(waiting);
  }

  /** Ends every wait, or the waits of one limiter. Returns how many. */
  close(reason: unknown, owner?: object): number {
    const leaving = [...this.#waiting].filter((waiting) => owner === undefined || waiting.owner === owner);
    // All leave before any line is served, because a line must not send the ask of a call that leaves next.
    const lines = new Set(leaving.map((waiting) => waiting.leaveLine()));
    for (const waiting of leaving) waiting.leave(reason);
    for (const line of lines) line?.serve();
    return leaving.length;
  }

  line({ entityId, resource }: Pick<LevelRef, 'entityId' | 'resource'>, limit: string): WaitingLine | undefined {
    return this.#lines.get(limit, buildBucketKey(entityId, resource));
  }

  /** The line of the limit that refused a request. */
  open(request: AcquireRequest, refusal: LimitStatus): WaitingLine {
    const key = keyOf(request, refusal);
    const { name } = refusal.limit;
    const known = this.#lines.get(name, key);
    if (known !== undefined) return known;
    const line = new WaitingLine(refusal, this.#clock, this.#random, (empty) => {
      if (this.#lines.get(name, key) === empty) this.#lines.delete(name, key);
    });
    this.#lines.set(name, key, line);
    return line;
  }

  /** Updates the lines from the answer to a request. Returns the lines of the limits in the answer. */
  learn(request: AcquireRequest, { granted, statuses }: LineAnswer, askedMs: EpochMs): readonly WaitingLine[] {
    if (this.isEmpty) return [];
    const concerned: WaitingLine[] = [];
    for (const status of statuses) {
      const line = this.#lines.get(status.limit.name, keyOf(request, status));
      if (line === undefined) continue;
      line.learn(status, granted, askedMs);
      concerned.push(line);
    }
    return concerned;
  }

  /** Called when this process has given something back to a bucket. */
  giveBack(bucket: Pick<LevelRef, 'entityId' | 'resource'>, amounts: readonly Amount[]): void {
    if (this.isEmpty) return;
    for (const { name, milli } of amounts) this.line(bucket, name)?.giveBack(Number(milli) / MILLI);
  }

  /** Called when this process has ended a pause. The pause may have been one of a parent, so every waiter asks. */
  resume(): void {
    for (const waiting of this.#waiting) waiting.askIfPaused();
  }

  /** Called when this process has reset a bucket. */
  fill({ entityId, resource }: Pick<LevelRef, 'entityId' | 'resource'>): void {
    const filled = buildBucketKey(entityId, resource);
    for (const [, key, line] of this.#lines.entries()) if (key === filled) line.fill();
  }
}

/** At the entity's own level, per-call limits have a separate bucket. */
function keyOf(request: AcquireRequest, { entityId }: LimitStatus): string {
  const isOwn = entityId === request.entityId;
  return buildBucketKey(entityId, isOwn ? bucketResource(request) : request.resource);
}
