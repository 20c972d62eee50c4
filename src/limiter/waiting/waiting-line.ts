import { type Clock, startTimer } from '../../clock.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import type { Limit } from '../../core/limit.js';
import type { EpochMs } from '../../core/units.js';
import { refills } from '../../core/limit-kind.js';
import { type Forecast, forecastOf } from './forecast.js';
import { type Ordered, OrderedQueue } from './ordered-queue.js';
import { WaveShare } from './wave-share.js';

/** The part of a waiter that its line uses. */
export interface InLine extends Ordered {
  /** The tokens that it needs from the limit of the line. */
  readonly tokens: number;
  /** When the call began to wait. */
  readonly sinceMs: EpochMs;
  /** Asks the store now. */
  ask(): void;
}

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
  readonly #clock: Required<Clock>;
  readonly #random: () => number;
  readonly #neighbours: Neighbours;
  readonly #queue = new OrderedQueue<InLine>();
  /** The sum of the tokens that the queued waiters need. */
  #queuedTokens = 0;
  /** The waiters whose ask is in flight, with the tokens that they need. */
  readonly #asking = new Map<InLine, number>();
  #askingTokens = 0;
  /** When each waiter should be served, by the forecast at the time it joined. */
  readonly #dueMs = new Map<InLine, EpochMs>();
  /** The class of the waiters; null: none. */
  readonly priority: string | null;
  #lastRefusal: LimitStatus;
  #forecast: Forecast;
  readonly #share: WaveShare;
  readonly #refilledIn = (ms: number): number => this.#forecast.refilledIn(ms);
  #servesSoon = false;
  #timer: { readonly atMs: EpochMs; readonly stop: () => void } | null = null;

  constructor(
    priority: string | null,
    refusal: LimitStatus,
    clock: Required<Clock>,
    random: () => number,
    neighbours: Neighbours,
  ) {
    this.priority = priority;
    this.#lastRefusal = refusal;
    this.#forecast = forecastOf(refusal.limit, random, refusal.reserved);
    this.#share = new WaveShare(random);
    this.#clock = clock;
    this.#random = random;
    this.#neighbours = neighbours;
  }

  /** The number of waiters, including those whose ask is in flight. */
  get depth(): number {
    return this.#queue.size + this.#asking.size;
  }

  /** What the waiters must leave. */
  get reserved(): number {
    return this.#lastRefusal.reserved ?? 0;
  }

  /** The first waiter, also if its ask is in flight. */
  get head(): InLine | null {
    const queued = this.#queue.first;
    for (const asking of this.#asking.keys()) return queued === null || asking.order < queued.order ? asking : queued;
    return queued;
  }

  /** The refusal that was seen last. */
  get lastRefusal(): LimitStatus {
    return this.#lastRefusal;
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
    const head = this.#queue.first;
    if (this.#asking.size > 0 || head === null || this.isHeld) return;
    // The head may have its tokens already, and wait for the time of the next wave.
    if (this.#forecast.holds(head.tokens, this.#clock.now())) return;
    this.#send(head);
    this.#setTimer();
  }

  /** Updates the forecast from an answer of the store to an ask of a class; `serve` acts on it. */
  learn(status: LimitStatus, priority: string | null, granted: boolean, askedMs: EpochMs): void {
    const isOwn = priority === this.priority;
    const isRefused = status.exceeded && status.shadow !== true;
    const hasReserve = !isOwn || (status.reserved ?? 0) === this.reserved;
    if (!hasReserve || !hasRulesOf(status.limit, this.#lastRefusal.limit)) this.#adopt(status, isOwn);
    if (isOwn) this.#share.learn(status.available - this.reserved, isRefused, askedMs, this.#refilledIn);
    if (isRefused) {
      if (isOwn) this.#lastRefusal = status;
      // What the ask of another class needed above the reserve of this class.
      const requested = status.requested + (status.reserved ?? 0) - this.reserved;
      this.#forecast.refuse({ ...status, requested }, askedMs, this.#clock.now());
      return;
    }
    if (granted) this.#forecast.take(status.requested, this.#clock.now());
    this.#forecast.see(status.available, askedMs);
  }

  giveBack(tokens: number): void {
    this.#forecast.giveBack(tokens);
    this.serve();
  }

  fill(): void {
    this.#forecast.fill(this.#clock.now());
    this.serve();
  }

  join(waiter: InLine): void {
    this.#queue.add(waiter);
    this.#queuedTokens += waiter.tokens;
    if (this.#dueMs.has(waiter)) return;
    this.#dueMs.set(waiter, this.#forecast.askMs(this.#askingTokens + this.#queuedTokens));
  }

  /** Puts back a waiter whose ask the store refused. It keeps its place. */
  rejoin(waiter: InLine, available: number): void {
    const nowMs = this.#clock.now();
    this.#remove(waiter);
    this.join(waiter);
    const heldMs = nowMs - (this.#dueMs.get(waiter) ?? nowMs);
    if (this.head !== waiter || heldMs < HOLD_MS + this.#forecast.refillMs(waiter.tokens)) return;
    this.#dueMs.set(waiter, nowMs);
    this.#letPass(waiter, available);
  }

  /** Removes a waiter that was granted, moved to another line, or aborted. */
  leave(waiter: InLine): void {
    this.#remove(waiter);
    this.#dueMs.delete(waiter);
  }

  /** Sends the next wave if it is due, otherwise sets a timer for it. Called at the end of every change of the line. */
  serve(): void {
    this.serveAlone();
    this.#neighbours.onServed(this);
  }

  /** Like `serve`, without telling the other lines of the limit. */
  serveAlone(): void {
    const nowMs = this.#clock.now();
    if (this.#nextWaveMs() <= nowMs) {
      do this.#send(this.#queue.first as InLine);
      while (this.#headFits(nowMs));
    }
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
    if (this.#queue.first !== waiter || this.isHeld) return false;
    const nowMs = this.#clock.now();
    const isWorthAsking = this.#asking.size === 0 && this.#forecast.isWorthAsking(waiter.tokens, nowMs);
    if (!isWorthAsking && !this.#headFits(nowMs)) return false;
    this.#send(waiter);
    this.#setTimer();
    return true;
  }

  /** When the limit should have so many tokens if the line did not exist. */
  aloneMs(tokens: number): EpochMs {
    return this.#forecast.askMs(tokens);
  }

  /** How long until all current waiters are served, as the wait for a call that timed out. For a rate only. */
  allServedInMs(): number {
    return Math.max(1, this.#forecast.askMs(this.#askingTokens + this.#queuedTokens) - this.#clock.now());
  }

  /** Whether a line of higher priority has waiters. */
  get isHeld(): boolean {
    return this.#neighbours.isHeld(this);
  }

  /** The refusal of a call that may not ask. It gets the wait until all current waiters are served. */
  refuse(tokens: number): LimitStatus {
    const isRate = refills(this.#lastRefusal.limit.kind);
    const retryAfterMs = isRate ? this.allServedInMs() : Math.max(1, this.#lastRefusal.retryAfterMs ?? 1);
    return { ...this.#lastRefusal, requested: tokens, exceeded: true, retryAfterMs };
  }

  /** Called when the rules have changed. Starts a new forecast from the last refusal. */
  #adopt({ limit, reserved }: LimitStatus, isOwn: boolean): void {
    const nowMs = this.#clock.now();
    const { reserved: before, ...refusal } = this.#lastRefusal;
    const next = isOwn ? reserved : before;
    this.#lastRefusal = { ...refusal, limit, ...(next === undefined ? {} : { reserved: next }) };
    this.#forecast = forecastOf(limit, this.#random, next);
    this.#forecast.refuse(this.#lastRefusal, nowMs, nowMs);
  }

  #nextWaveMs(): EpochMs {
    const head = this.#queue.first;
    if (head === null || this.isHeld) return Number.POSITIVE_INFINITY;
    if (this.#asking.size === 0) {
      const headMs = this.#forecast.askMs(head.tokens);
      return this.#share.waveMs(headMs, this.#forecast.askMs(this.#queuedTokens), this.#refilledIn);
    }
    return this.#forecast.askBesidesMs(this.#askingTokens, head.tokens);
  }

  #headFits(nowMs: EpochMs): boolean {
    const head = this.#queue.first;
    if (head === null || this.isHeld) return false;
    if (!this.#share.allows(this.#askingTokens + head.tokens, this.#refilledIn)) return false;
    return this.#forecast.holds(this.#askingTokens + head.tokens, nowMs);
  }

  #send(waiter: InLine): void {
    if (this.#asking.size === 0) this.#share.startWave(this.#clock.now());
    this.#remove(waiter);
    this.#asking.set(waiter, waiter.tokens);
    this.#askingTokens += waiter.tokens;
    waiter.ask();
  }

  #remove(waiter: InLine): void {
    if (this.#queue.delete(waiter)) this.#queuedTokens -= waiter.tokens;
    this.#askingTokens -= this.#asking.get(waiter) ?? 0;
    this.#asking.delete(waiter);
  }

  /** Lets waiters pass a head that is refused again and again, so that they do not wait for ever. */
  #letPass(head: InLine, available: number): void {
    let left = available;
    for (let next = this.#queue.after(head); next !== null && next.tokens <= left; next = this.#queue.after(head)) {
      left -= next.tokens;
      this.#send(next);
    }
  }

  #setTimer(): void {
    const atMs = this.#nextWaveMs();
    if (this.#timer?.atMs === atMs) return;
    this.#timer?.stop();
    this.#timer = null;
    if (!Number.isFinite(atMs)) return;
    const stop = startTimer(this.#clock, Math.max(0, atMs - this.#clock.now()), () => {
      this.#timer = null;
      this.serve();
    });
    this.#timer = { atMs, stop };
  }
}

function hasRulesOf(one: Limit, other: Limit): boolean {
  return (
    one.capacity === other.capacity &&
    one.refillAmount === other.refillAmount &&
    one.refillPeriodMs === other.refillPeriodMs
  );
}
