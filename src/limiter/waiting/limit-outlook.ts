import type { LimitStatus } from '../../core/bucket/decide.js';
import { refills } from '../../core/limit-kind.js';
import type { Limit } from '../../core/limit.js';
import type { EpochMs } from '../../core/units.js';
import { type Forecast, forecastOf } from './forecast.js';
import { WaveShare } from './wave-share.js';

/** What one line knows of its limit, from the answers of the store to the asks of this process. */
export class LimitOutlook {
  readonly #random: () => number;
  #lastRefusal: LimitStatus;
  #forecast: Forecast;
  readonly #share: WaveShare;
  readonly #refilledIn = (ms: number): number => this.#forecast.refilledIn(ms);

  constructor(refusal: LimitStatus, random: () => number) {
    this.#random = random;
    this.#lastRefusal = refusal;
    this.#forecast = forecastOf(refusal.limit, random, refusal.reserved);
    this.#share = new WaveShare(random);
  }

  /** The refusal that was seen last. */
  get lastRefusal(): LimitStatus {
    return this.#lastRefusal;
  }

  /** What the waiters must leave. */
  get reserved(): number {
    return this.#lastRefusal.reserved ?? 0;
  }

  get forecast(): Forecast {
    return this.#forecast;
  }

  /** `isOwn`: whether the ask was of the priority class of the line. `granted`: what the store answered, at `nowMs`. */
  learn(status: LimitStatus, isOwn: boolean, granted: boolean, askedMs: EpochMs, nowMs: EpochMs): void {
    const isRefused = status.exceeded && status.shadow !== true;
    const hasReserve = !isOwn || (status.reserved ?? 0) === this.reserved;
    if (!hasReserve || !hasRulesOf(status.limit, this.#lastRefusal.limit)) this.#adopt(status, isOwn, nowMs);
    if (isOwn) this.#share.learn(status.available - this.reserved, isRefused, askedMs, this.#refilledIn);
    if (isRefused) {
      if (isOwn) this.#lastRefusal = status;
      // What the ask of another class needed above the reserve of this class.
      const requested = status.requested + (status.reserved ?? 0) - this.reserved;
      this.#forecast.refuse({ ...status, requested }, askedMs, nowMs);
      return;
    }
    if (granted) this.#forecast.take(status.requested, nowMs);
    this.#forecast.see(status.available, askedMs);
  }

  startWave(nowMs: EpochMs): void {
    this.#share.startWave(nowMs);
  }

  /** When to send a wave that begins with an ask for `headTokens`, while all queued waiters need `queuedTokens`. */
  waveMs(headTokens: number, queuedTokens: number): EpochMs {
    const headMs = this.#forecast.askMs(headTokens);
    return this.#share.waveMs(headMs, this.#forecast.askMs(queuedTokens), this.#refilledIn);
  }

  /** Whether a wave may ask for so many tokens in all, and should get them now. */
  hasRoom(tokens: number, nowMs: EpochMs): boolean {
    return this.#share.allows(tokens, this.#refilledIn) && this.#forecast.holds(tokens, nowMs);
  }

  /** The refusal of a call that may not ask. `servedInMs`: how long until a rate has served all waiters. */
  refuse(tokens: number, servedInMs: number): LimitStatus {
    const isRate = refills(this.#lastRefusal.limit.kind);
    const retryAfterMs = isRate ? servedInMs : Math.max(1, this.#lastRefusal.retryAfterMs ?? 1);
    return { ...this.#lastRefusal, requested: tokens, exceeded: true, retryAfterMs };
  }

  /** Called when the rules have changed. Starts a new forecast from the last refusal. */
  #adopt({ limit, reserved }: LimitStatus, isOwn: boolean, nowMs: EpochMs): void {
    const { reserved: before, ...refusal } = this.#lastRefusal;
    const next = isOwn ? reserved : before;
    this.#lastRefusal = { ...refusal, limit, ...(next === undefined ? {} : { reserved: next }) };
    this.#forecast = forecastOf(limit, this.#random, next);
    this.#forecast.refuse(this.#lastRefusal, nowMs, nowMs);
  }
}

function hasRulesOf(one: Limit, other: Limit): boolean {
  return (
    one.capacity === other.capacity &&
    one.refillAmount === other.refillAmount &&
    one.refillPeriodMs === other.refillPeriodMs
  );
}
