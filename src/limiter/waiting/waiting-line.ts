import type { Clock } from '../../clock.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import type { EpochMs } from '../../core/units.js';
import type { LimitOutlook } from './limit-outlook.js';
import { type InLine, LineMembers } from './line-members.js';
import { LineWaves } from './line-waves.js';
import { WaveTimer } from './wave-timer.js';

/** A refused head holds back the waiters behind it until this long after its due time plus the refill time of its tokens. */
const HOLD_MS = 1_000;

/** What a line must know about the lines of other priority classes that wait for the same limit. */
export interface Neighbours {
  /** Whether a line of higher priority has waiters, so that this line must not ask. */
  isHeld(line: WaitingLine): boolean;
  /** The line has changed: it may be empty, and lines that it held back may ask. */
  onServed(line: WaitingLine): void;
}

/**
 * The calls of this process that wait for one limit of one bucket, in the order of their arrival. The head asks when
 * the limit should have room for it, together with the waiters behind it that should fit too, so that a store that
 * groups asks gets one group. The next wave is sent when the previous one is answered, so that the order is kept. Each
 * priority class has its own line, which asks only while no line with a smaller reserve has waiters.
 */
export class WaitingLine {
  /** The class of the waiters; null: none. */
  readonly priority: string | null;
  readonly outlook: LimitOutlook;
  readonly #clock: Required<Clock>;
  readonly #neighbours: Neighbours;
  readonly #members = new LineMembers();
  readonly #waves: LineWaves;
  readonly #timer: WaveTimer;
  /** When each waiter should be served, by the forecast at the time it joined. */
  readonly #dueMs = new Map<InLine, EpochMs>();
  #servesSoon = false;

  constructor(priority: string | null, outlook: LimitOutlook, clock: Required<Clock>, neighbours: Neighbours) {
    this.priority = priority;
    this.outlook = outlook;
    this.#clock = clock;
    this.#neighbours = neighbours;
    this.#waves = new LineWaves(this.#members, this.outlook);
    this.#timer = new WaveTimer(clock, () => this.serve());
  }

  /** The number of waiters, including those whose ask is in flight. */
  get depth(): number {
    return this.#members.size;
  }

  /** The first waiter, also if its ask is in flight. */
  get head(): InLine | null {
    return this.#members.head;
  }

  /** Whether a line of higher priority has waiters. */
  get isHeld(): boolean {
    return this.#neighbours.isHeld(this);
  }

  /**
   * Whether a new call must join without asking first. It must if the head needs no more tokens than the call: the head
   * comes first. A smaller ask may go before a head that needs more, until the head should have been served: small asks
   * that keep arriving must not starve the head.
   */
  holdsBack(tokens: number): boolean {
    const { head } = this;
    if (head === null) return false;
    return tokens >= head.tokens || (this.#dueMs.get(head) ?? 0) <= this.#clock.now();
  }

  /** Adds a call that did not ask. The head asks instead, because the store may have more tokens than this process knows. */
  joinUnasked(waiter: InLine): void {
    this.join(waiter);
    this.serve();
    if (!this.isHeld && this.#waves.sendEarly(this.#clock.now())) this.#setTimer();
  }

  /** Updates the forecast from an answer of the store to an ask of a class; `serve` acts on it. */
  learn(status: LimitStatus, priority: string | null, granted: boolean, askedMs: EpochMs): void {
    this.outlook.learn(status, priority === this.priority, granted, askedMs, this.#clock.now());
  }

  giveBack(tokens: number): void {
    this.outlook.forecast.giveBack(tokens);
    this.serve();
  }

  fill(): void {
    this.outlook.forecast.fill(this.#clock.now());
    this.serve();
  }

  join(waiter: InLine): void {
    this.#members.queue(waiter);
    if (!this.#dueMs.has(waiter)) this.#dueMs.set(waiter, this.#allServedMs());
  }

  /** Puts back a waiter whose ask the store refused. It keeps its place. */
  rejoin(waiter: InLine, available: number): void {
    const nowMs = this.#clock.now();
    this.#members.remove(waiter);
    this.join(waiter);
    const heldMs = nowMs - (this.#dueMs.get(waiter) ?? nowMs);
    if (this.head !== waiter || heldMs < HOLD_MS + this.outlook.forecast.refillMs(waiter.tokens)) return;
    this.#dueMs.set(waiter, nowMs);
    // The head is refused again and again. The waiters behind it must not wait for ever.
    this.#waves.sendPast(waiter, available, nowMs);
  }

  /** Removes a waiter that was granted, moved to another line, or aborted. */
  leave(waiter: InLine): void {
    this.#members.remove(waiter);
    this.#dueMs.delete(waiter);
  }

  /** Sends the next wave if it is due, otherwise sets a timer for it. Called at the end of every change of the line. */
  serve(): void {
    this.serveAlone();
    this.#neighbours.onServed(this);
  }

  /** Like `serve`, without telling the other lines of the limit. */
  serveAlone(): void {
    if (!this.isHeld) this.#waves.sendDue(this.#clock.now());
    this.#setTimer();
  }

  /** Calls `serve` after all answers of this turn of the event loop, so that waiters that are refused together ask together. */
  serveSoon(): void {
    if (this.#servesSoon) return;
    this.#servesSoon = true;
    queueMicrotask(() => {
      this.#servesSoon = false;
      this.serve();
    });
  }

  /**
   * Sends the ask of a waiter that timed out, if it is the first and the ask may succeed. False: the waiter must leave
   * without another ask.
   */
  sendLast(waiter: InLine): boolean {
    if (this.isHeld || !this.#waves.sendLast(waiter, this.#clock.now())) return false;
    this.#setTimer();
    return true;
  }

  /** How long until all current waiters are served, as the wait for a call that timed out. For a rate only. */
  allServedInMs(): number {
    return Math.max(1, this.#allServedMs() - this.#clock.now());
  }

  /** The refusal of a call that may not ask. It gets the wait until all current waiters are served. */
  refuse(tokens: number): LimitStatus {
    return this.outlook.refuse(tokens, this.allServedInMs());
  }

  #allServedMs(): EpochMs {
    return this.outlook.forecast.askMs(this.#members.askingTokens + this.#members.queuedTokens);
  }

  #setTimer(): void {
    this.#timer.moveTo(this.isHeld ? Number.POSITIVE_INFINITY : this.#waves.nextMs());
  }
}
