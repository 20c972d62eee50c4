import type { EpochMs } from '../../core/units.js';
import { type Ordered, OrderedQueue } from './ordered-queue.js';

/** The part of a waiter that its line uses. */
export interface InLine extends Ordered {
  /** The tokens that it needs from the limit of the line. */
  readonly tokens: number;
  /** When the call began to wait. */
  readonly sinceMs: EpochMs;
  /** Asks the store now. */
  ask(): void;
}

/** The waiters of one line: queued, or with an ask in flight. */
export class LineMembers {
  readonly #queue = new OrderedQueue<InLine>();
  #queuedTokens = 0;
  /** With the tokens that they needed when they asked. */
  readonly #asking = new Map<InLine, number>();
  #askingTokens = 0;

  /** The number of waiters, including those whose ask is in flight. */
  get size(): number {
    return this.#queue.size + this.#asking.size;
  }

  get isAsking(): boolean {
    return this.#asking.size > 0;
  }

  /** The sum of the tokens that the queued waiters need. */
  get queuedTokens(): number {
    return this.#queuedTokens;
  }

  /** The sum of the tokens of the asks in flight. */
  get askingTokens(): number {
    return this.#askingTokens;
  }

  get firstQueued(): InLine | null {
    return this.#queue.first;
  }

  /** The first waiter, also if its ask is in flight. */
  get head(): InLine | null {
    const queued = this.#queue.first;
    for (const asking of this.#asking.keys()) return queued === null || asking.order < queued.order ? asking : queued;
    return queued;
  }

  queuedAfter(waiter: InLine): InLine | null {
    return this.#queue.after(waiter);
  }

  queue(waiter: InLine): void {
    this.#queue.add(waiter);
    this.#queuedTokens += waiter.tokens;
  }

  /** Sends the ask of a waiter, which is in flight until the waiter is removed or queued again. */
  send(waiter: InLine): void {
    this.remove(waiter);
    this.#asking.set(waiter, waiter.tokens);
    this.#askingTokens += waiter.tokens;
    waiter.ask();
  }

  remove(waiter: InLine): void {
    if (this.#queue.delete(waiter)) this.#queuedTokens -= waiter.tokens;
    this.#askingTokens -= this.#asking.get(waiter) ?? 0;
    this.#asking.delete(waiter);
  }
}
