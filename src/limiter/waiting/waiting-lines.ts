import type { LevelRef } from '../../backend.js';
import type { Clock } from '../../clock.js';
import type { Amount, LimitStatus } from '../../core/bucket/decide.js';
import { buildBucketKey, parseBucketKey, parsePlainResource } from '../../core/identifiers.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import { type EpochMs, MILLI } from '../../core/units.js';
import { bucketResource } from '../acquire/levels.js';
import type { AcquireRequest } from '../acquire/request.js';
import { LimitOutlook } from './limit-outlook.js';
import { CallsWithoutLimit } from './calls-without-limit.js';
import { type Neighbours, WaitingLine } from './waiting-line.js';
import type { WaitingStatus } from './waiting-status.js';

/** A call that waits, including the time of its first ask. */
interface WaitingCall {
  /** `owner`: the connection whose `close` ends the wait. */
  readonly caller: { readonly owner: object };
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

/** The calls of this process that wait, in one namespace: one line for each priority class of a limit that refused. */
export class WaitingLines {
  readonly #clock: Required<Clock>;
  readonly #random: () => number;
  /** The lines of each limit, by its name and the key of its bucket. */
  readonly #lines = new TwoKeyMap<readonly WaitingLine[]>();
  readonly #waiting = new Set<WaitingCall>();
  readonly withoutLimit = new CallsWithoutLimit();
  #entered = 0;

  constructor(clock: Required<Clock>, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  get hasCalls(): boolean {
    return this.#waiting.size > 0;
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
    const leaving = [...this.#waiting].filter((waiting) => owner === undefined || waiting.caller.owner === owner);
    // All leave before any line is served, because a line must not send the ask of a call that leaves next.
    const lines = new Set(leaving.map((waiting) => waiting.leaveLine()));
    for (const waiting of leaving) waiting.leave(reason);
    for (const line of lines) line?.serve();
    return leaving.length;
  }

  /** The lines of all classes that wait for a limit. */
  of({ entityId, resource }: Pick<LevelRef, 'entityId' | 'resource'>, limit: string): readonly WaitingLine[] {
    return this.#lines.get(limit, buildBucketKey(entityId, resource)) ?? NO_LINES;
  }

  /** The line, for the class of a request, of the limit that refused it. */
  open(request: AcquireRequest, refusal: LimitStatus): WaitingLine {
    const key = keyOf(request, refusal);
    const { name } = refusal.limit;
    const priority = request.priority ?? null;
    const lines = this.#lines.get(name, key) ?? NO_LINES;
    const known = lines.find((line) => line.priority === priority);
    if (known !== undefined) return known;
    const outlook = new LimitOutlook(refusal, this.#random);
    const line = new WaitingLine(priority, outlook, this.#clock, this.#neighboursAt(name, key));
    this.#lines.set(name, key, [...lines, line]);
    return line;
  }

  #neighboursAt(name: string, key: string): Neighbours {
    return {
      isHeld: (line) =>
        this.#lines.get(name, key)?.some((other) => other !== line && comesBefore(other, line)) === true,
      onServed: (line) => {
        const others = (this.#lines.get(name, key) ?? NO_LINES).filter((other) => other !== line);
        if (line.depth === 0 && others.length > 0) this.#lines.set(name, key, others);
        else if (line.depth === 0) this.#lines.delete(name, key);
        for (const other of others) other.serveAlone();
      },
    };
  }

  /** Updates the lines from the answer to a request. Returns the lines of the limits in the answer. */
  learn(request: AcquireRequest, { granted, statuses }: LineAnswer, askedMs: EpochMs): readonly WaitingLine[] {
    if (this.isEmpty) return [];
    const concerned: WaitingLine[] = [];
    for (const status of statuses) {
      for (const line of this.#lines.get(status.limit.name, keyOf(request, status)) ?? NO_LINES) {
        line.learn(status, request.priority ?? null, granted, askedMs);
        concerned.push(line);
      }
    }
    return concerned;
  }

  /** Called when this process has given something back to a bucket. */
  giveBack(bucket: Pick<LevelRef, 'entityId' | 'resource'>, amounts: readonly Amount[]): void {
    if (this.isEmpty) return;
    for (const { name, milli } of amounts) {
      for (const line of this.of(bucket, name)) line.giveBack(Number(milli) / MILLI);
    }
  }

  /** Called when this process has ended a pause. The pause may have been one of a parent, so every waiter asks. */
  resume(): void {
    for (const waiting of this.#waiting) waiting.askIfPaused();
  }

  /** Called when this process has reset a bucket. */
  fill({ entityId, resource }: Pick<LevelRef, 'entityId' | 'resource'>): void {
    const filled = buildBucketKey(entityId, resource);
    for (const [, key, lines] of this.#lines.entries()) {
      if (key === filled) for (const line of lines) line.fill();
    }
  }

  /** The lines that have waiters. */
  list(): WaitingStatus[] {
    const nowMs = this.#clock.now();
    const found: WaitingStatus[] = [];
    for (const [limit, key, lines] of this.#lines.entries()) {
      const { entityId, resource } = parseBucketKey(key);
      for (const { priority, depth, head } of lines) {
        if (head === null) continue;
        const oldestWaitMs = nowMs - head.sinceMs;
        found.push({ entityId, resource: parsePlainResource(resource), limit, priority, depth, oldestWaitMs });
      }
    }
    return [...found, ...this.withoutLimit.list(nowMs)];
  }
}

const NO_LINES: readonly WaitingLine[] = [];

/** Whether waiters of `one` go before those of `other`: less reserve first, then the earlier head. */
function comesBefore(one: WaitingLine, other: WaitingLine): boolean {
  const [reserved, othersReserved] = [one.outlook.reserved, other.outlook.reserved];
  if (one.head === null || reserved !== othersReserved) return one.head !== null && reserved < othersReserved;
  return other.head !== null && one.head.order < other.head.order;
}

/** At the entity's own level, per-call limits have a separate bucket. */
function keyOf(request: AcquireRequest, { entityId }: LimitStatus): string {
  const isOwn = entityId === request.entityId;
  return buildBucketKey(entityId, isOwn ? bucketResource(request) : request.resource);
}
