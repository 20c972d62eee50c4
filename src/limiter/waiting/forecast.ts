import type { LimitStatus } from '../../core/bucket/decide.js';
import { refills } from '../../core/limit-kind.js';
import type { Limit } from '../../core/limit.js';
import type { EpochMs } from '../../core/units.js';

/**
 * Estimates when a limit will have room for the waiters of one line, from the last answers of the store. Other processes
 * and asks that do not wait take from the same limit. A wrong estimate costs one ask, and its answer corrects it.
 */
export interface Forecast {
  /** The store refused an ask that was made at `askedMs`; its answer came at `nowMs`. */
  refuse(status: LimitStatus, askedMs: EpochMs, nowMs: EpochMs): void;
  /** The store showed this many tokens at `askedMs`. */
  see(available: number, askedMs: EpochMs): void;
  take(tokens: number, nowMs: EpochMs): void;
  giveBack(tokens: number): void;
  /** The bucket was filled. */
  fill(nowMs: EpochMs): void;
  /** Whether so many tokens should be available now. */
  holds(tokens: number, nowMs: EpochMs): boolean;
  /** When to ask for so many tokens, while no ask of the line is in flight. */
  askMs(tokens: number): EpochMs;
  /** How long an empty limit needs for so many tokens: 0 for slots, which do not refill. */
  refillMs(tokens: number): number;
  /** How many tokens refill in this time, at most half of the capacity; 0 for slots. */
  refilledIn(ms: number): number;
  /** Whether the head should ask once more before its timeout. */
  isWorthAsking(tokens: number, nowMs: EpochMs): boolean;
  /** When to ask for `tokens` although asks for `asking` are still in flight. */
  askBesidesMs(asking: number, tokens: number): EpochMs;
}

/** `reserved`: what the waiters of the line must leave. The forecast counts only the tokens above it. */
export function forecastOf(limit: Limit, random: () => number, reserved = 0): Forecast {
  const usable = limit.capacity - reserved;
  return refills(limit.kind) ? new RateForecast(limit, usable, reserved) : new SlotForecast(usable, reserved, random);
}

/** The tokens of a rate: a linear function of time through one known point. Exact while only this line takes from the limit. */
class RateForecast implements Forecast {
  readonly #limit: Limit;
  /** The capacity above the reserve. */
  readonly #usable: number;
  readonly #reserved: number;
  #atMs: EpochMs = 0;
  /** The tokens of the bucket above the reserve at that instant, less what was taken since. */
  #tokens = 0;

  constructor(limit: Limit, usable: number, reserved: number) {
    this.#limit = limit;
    this.#usable = usable;
    this.#reserved = reserved;
  }

  refuse({ requested, retryAfterMs }: LimitStatus, askedMs: EpochMs): void {
    this.#atMs = askedMs + (retryAfterMs ?? 0);
    this.#tokens = requested;
  }

  /** Only raises the estimate: whole tokens are rounded down, and a denial states exactly when there will be enough. */
  see(available: number, askedMs: EpochMs): void {
    const tokens = available - this.#reserved;
    if (this.askMs(tokens) <= askedMs) return;
    this.#atMs = askedMs;
    this.#tokens = tokens;
  }

  take(tokens: number): void {
    this.#tokens -= tokens;
  }

  giveBack(tokens: number): void {
    this.#tokens += tokens;
  }

  fill(nowMs: EpochMs): void {
    this.#atMs = nowMs;
    this.#tokens = this.#usable;
  }

  holds(tokens: number, nowMs: EpochMs): boolean {
    return this.askMs(tokens) <= nowMs;
  }

  /** Rounded up, so that the ask is never too early. */
  askMs(tokens: number): EpochMs {
    return this.#atMs + this.refillMs(tokens - this.#tokens);
  }

  refillMs(tokens: number): number {
    return tokens === 0 ? 0 : Math.ceil((tokens * this.#limit.refillPeriodMs) / this.#limit.refillAmount);
  }

  refilledIn(ms: number): number {
    const { refillAmount, refillPeriodMs, capacity } = this.#limit;
    return Math.floor(Math.min((ms * refillAmount) / refillPeriodMs, capacity / 2));
  }

  isWorthAsking(tokens: number, nowMs: EpochMs): boolean {
    return this.holds(tokens, nowMs);
  }

  /** Waits for the answers, which keeps the order of the line, unless refilled tokens would exceed the capacity meanwhile. */
  askBesidesMs(asking: number): EpochMs {
    return this.askMs(asking + this.#usable);
  }
}

/** Another process may give a slot back at any time, so a line for slots asks again at these intervals. */
const ASK_AGAIN_MS = { least: 100, most: 250 };

/** The slots of a concurrent limit: how many are known to be free, and when to ask for others. */
class SlotForecast implements Forecast {
  readonly #usable: number;
  readonly #reserved: number;
  readonly #random: () => number;
  /** The free slots above the reserve. */
  #free = 0;
  #askAgainMs: EpochMs = 0;
  #refusedMs: EpochMs = 0;

  constructor(usable: number, reserved: number, random: () => number) {
    this.#usable = usable;
    this.#reserved = reserved;
    this.#random = random;
  }

  refuse({ available, requested, retryAfterMs }: LimitStatus, askedMs: EpochMs, nowMs: EpochMs): void {
    // Fewer than the refused ask, whatever the status says: the same ask must not be sent again at once. Below 0 for an ask
    // for 0, which is refused while more slots are held than there are.
    this.#free = Math.min(requested - 1, Math.max(0, available) - this.#reserved);
    this.#refusedMs = askedMs;
    const expiryMs = askedMs + (retryAfterMs ?? Number.POSITIVE_INFINITY);
    this.#askAgainMs = Math.min(this.#pauseFrom(nowMs), Math.max(nowMs + 1, expiryMs));
  }

  see(available: number): void {
    this.#free = Math.max(this.#free, available - this.#reserved);
  }

  take(tokens: number, nowMs: EpochMs): void {
    this.#free = Math.max(-this.#reserved, this.#free - tokens);
    this.#askAgainMs = this.#pauseFrom(nowMs);
  }

  giveBack(tokens: number): void {
    this.#free = Math.min(this.#usable, this.#free + tokens);
  }

  fill(): void {
    this.#free = this.#usable;
  }

  holds(tokens: number): boolean {
    return tokens <= this.#free;
  }

  askMs(tokens: number): EpochMs {
    return this.holds(tokens) ? 0 : this.#askAgainMs;
  }

  refillMs(): number {
    return 0;
  }

  refilledIn(): number {
    return 0;
  }

  /** Not right after another ask: many callers that time out one after the other would all ask. */
  isWorthAsking(tokens: number, nowMs: EpochMs): boolean {
    return this.holds(tokens) || nowMs - this.#refusedMs >= ASK_AGAIN_MS.least;
  }

  askBesidesMs(asking: number, tokens: number): EpochMs {
    return this.holds(asking + tokens) ? 0 : Number.POSITIVE_INFINITY;
  }

  #pauseFrom(nowMs: EpochMs): EpochMs {
    return nowMs + ASK_AGAIN_MS.least + Math.floor(this.#random() * (ASK_AGAIN_MS.most - ASK_AGAIN_MS.least));
  }
}
