import type { EpochMs } from '../../core/units.js';
import type { LimitOutlook } from './limit-outlook.js';
import type { InLine, LineMembers } from './line-members.js';

/** Decides when the waiters of one line ask, and sends their asks: in waves, each with the waiters that should fit. */
export class LineWaves {
  readonly #members: LineMembers;
  readonly #outlook: LimitOutlook;

  constructor(members: LineMembers, outlook: LimitOutlook) {
    this.#members = members;
    this.#outlook = outlook;
  }

  /** When the next wave is due; infinity: no waiter is queued. */
  nextMs(): EpochMs {
    const { firstQueued: head, isAsking, queuedTokens, askingTokens } = this.#members;
    if (head === null) return Number.POSITIVE_INFINITY;
    if (!isAsking) return this.#outlook.waveMs(head.tokens, queuedTokens);
    return this.#outlook.forecast.askBesidesMs(askingTokens, head.tokens);
  }

  /** Sends the next wave if it is due. */
  sendDue(nowMs: EpochMs): void {
    if (this.nextMs() > nowMs) return;
    do this.#send(this.#members.firstQueued as InLine, nowMs);
    while (this.#headFits(nowMs));
  }

  /** Sends the ask of the head before the limit should have its tokens, unless an ask is in flight. False: it was not sent. */
  sendEarly(nowMs: EpochMs): boolean {
    const { firstQueued: head, isAsking } = this.#members;
    // The head may have its tokens already, and wait for the time of the next wave.
    if (head === null || isAsking || this.#outlook.forecast.holds(head.tokens, nowMs)) return false;
    this.#send(head, nowMs);
    return true;
  }

  /** Sends the ask of a waiter whose time is over, if it is the first and the ask may succeed. False: it was not sent. */
  sendLast(waiter: InLine, nowMs: EpochMs): boolean {
    if (this.#members.firstQueued !== waiter) return false;
    const isWorthAsking = !this.#members.isAsking && this.#outlook.forecast.isWorthAsking(waiter.tokens, nowMs);
    if (!isWorthAsking && !this.#headFits(nowMs)) return false;
    this.#send(waiter, nowMs);
    return true;
  }

  /** Sends the asks of the waiters behind the head that fit into what is available. */
  sendPast(head: InLine, available: number, nowMs: EpochMs): void {
    let left = available;
    let next = this.#members.queuedAfter(head);
    for (; next !== null && next.tokens <= left; next = this.#members.queuedAfter(head)) {
      left -= next.tokens;
      this.#send(next, nowMs);
    }
  }

  #headFits(nowMs: EpochMs): boolean {
    const { firstQueued: head, askingTokens } = this.#members;
    return head !== null && this.#outlook.hasRoom(askingTokens + head.tokens, nowMs);
  }

  #send(waiter: InLine, nowMs: EpochMs): void {
    if (!this.#members.isAsking) this.#outlook.startWave(nowMs);
    this.#members.send(waiter);
  }
}
