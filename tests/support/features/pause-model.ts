/**
 * The simplest bucket that can be paused: a rate of one token a second, slots, and the end of a pause. It refills at every
 * step, in whole seconds, and shares no code with the stores.
 */
export class PauseModel {
  readonly capacity: number;
  tokens: number;
  slots: number;
  /** 0: never paused. */
  endMs = 0;
  nowMs: number;

  constructor(capacity: number, slots: number, nowMs: number) {
    this.capacity = capacity;
    this.tokens = capacity;
    this.slots = slots;
    this.nowMs = nowMs;
  }

  advance(ms: number): void {
    this.nowMs += ms;
    this.tokens = Math.min(this.capacity, this.tokens + ms / 1_000);
  }

  /** Of several pauses the latest end applies. */
  pause(forMs: number): void {
    this.endMs = Math.max(this.endMs, this.nowMs + forMs);
  }

  resume(): void {
    this.endMs = 0;
  }

  /** The wait of a paused ask; null if the ask is not paused. */
  get pausedForMs(): number | null {
    return this.endMs > this.nowMs ? this.endMs - this.nowMs : null;
  }

  /** Whether the ask is granted. A pause refuses it whatever there is. */
  take(tokens: number, slots = 0): boolean {
    if (this.pausedForMs !== null || tokens > this.tokens || slots > this.slots) return false;
    this.tokens -= tokens;
    this.slots -= slots;
    return true;
  }

  /** A debit (positive) or a refund (negative): no pause refuses it. */
  move(tokens: number, slots = 0): void {
    this.tokens = Math.min(this.capacity, this.tokens - tokens);
    this.slots -= slots;
  }

  fill(capacity = this.capacity, slots = this.slots): void {
    this.tokens = capacity;
    this.slots = slots;
  }

  get available(): { readonly rpm: number; readonly slots: number } {
    return { rpm: this.tokens, slots: this.slots };
  }
}
