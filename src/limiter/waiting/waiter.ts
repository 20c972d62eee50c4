import { startTimer } from '../../clock.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import type { EpochMs } from '../../core/units.js';
import { attempt, giveBack } from '../acquire/acquire.js';
import type { Context } from '../context.js';
import type { Decision, Denied } from '../acquire/decision.js';
import { findHoldingLine } from './holding-line.js';
import type { AcquireRequest } from '../acquire/request.js';
import type { InLine } from './line-members.js';
import { denialAtTimeout, denialOf, isFinal, type LastDenial, refusalToWaitFor } from './waiter-denials.js';
import type { WaitingLine } from './waiting-line.js';

/** What a waiter belongs to, and how it ends. */
interface Caller {
  /** The wait ends when the owner is closed. */
  readonly owner: object;
  /** `waitingSinceMs`: when the call was first refused; null: it was decided at once. */
  readonly resolve: (decision: Decision, waitingSinceMs: EpochMs | null) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * One call that waits. It asks first, like a call without a wait. When it is refused, it joins the line of the limit that
 * refused, and asks again when that line calls `ask`. It ends with a grant, with a denial after its timeout or when no wait
 * helps, or with the abort reason.
 */
export class Waiter implements InLine {
  readonly caller: Caller;
  readonly order: number;
  readonly sinceMs: EpochMs;
  tokens = 0;
  readonly #context: Context;
  readonly #request: AcquireRequest;
  readonly #endMs: EpochMs;
  readonly #stop = new AbortController();
  readonly #onAbort = (): void => this.leave(this.#request.signal?.reason);
  #line: WaitingLine | null = null;
  #isAsking = false;
  #hasEnded = false;
  #waitingSinceMs: EpochMs | null = null;
  #lastDenial: LastDenial | null = null;
  #stopTimer: (() => void) | null = null;

  constructor(context: Context, request: AcquireRequest, timeoutMs: number, caller: Caller) {
    this.#context = context;
    this.#request = request;
    this.caller = caller;
    this.sinceMs = context.clock.now();
    this.#endMs = this.sinceMs + timeoutMs;
    this.order = context.lines.enter(this);
  }

  start(): void {
    this.#request.signal?.addEventListener('abort', this.#onAbort, { once: true });
    const held = findHoldingLine(this.#context, this.#request, this.#endMs);
    if (held === null) this.ask();
    else if (isFull(held.line, this.#request)) this.#deny(denialOf(held.line.refuse(held.tokens)));
    else {
      this.#moveTo(held.line, held.tokens);
      held.line.joinUnasked(this);
    }
  }

  ask(): void {
    const askedMs = this.#context.clock.now();
    this.#isAsking = true;
    // Neither the timeout of the wait nor the end of a pause concerns an ask in flight.
    this.#stopTimer?.();
    attempt(this.#context, { ...this.#request, signal: this.#stop.signal }, 'decision', asMade)
      .then((decision) => this.#answered(decision, askedMs))
      .catch((error: unknown) => this.#end(() => this.caller.reject(error)));
  }

  /** Called when the signal aborts or the limiter is closed. What an ask in flight takes is given back. */
  leave(reason: unknown): void {
    this.#end(() => this.caller.reject(reason));
    this.#stop.abort();
  }

  /** Called when this process has ended a pause. */
  askIfPaused(): void {
    const isPaused = this.#lastDenial?.denied.reason === 'paused';
    if (isPaused && !this.#isAsking && this.#context.lines.withoutLimit.has(this.#request, this)) this.ask();
  }

  #answered(decision: Decision, askedMs: EpochMs): void {
    this.#isAsking = false;
    if (this.#hasEnded) {
      // The call was aborted between the answer and its delivery.
      if (decision.granted) giveBack(this.#context, decision.lease);
      return;
    }
    const refusal = decision.granted ? null : refusalToWaitFor(decision);
    const next = refusal === null ? null : this.#context.lines.open(this.#request, refusal);
    const before = this.#line;
    const concerned = this.#context.lines.learn(this.#request, decision, askedMs);
    if (decision.granted) this.#end(() => this.caller.resolve(decision, this.#waitingSinceMs));
    else this.#refused(decision, askedMs, refusal, next);
    if (before !== null && !concerned.includes(before)) before.serveSoon();
    for (const line of concerned) line.serveSoon();
  }

  #refused(denied: Denied, askedMs: EpochMs, refusal: LimitStatus | null, next: WaitingLine | null): void {
    this.#lastDenial = { denied, askedMs };
    const leftMs = this.#endMs - this.#context.clock.now();
    const { withoutLimit } = this.#context.lines;
    const isRefusedByLine =
      next === null ? withoutLimit.isFullFor(this.#request, this) : next !== this.#line && isFull(next, this.#request);
    withoutLimit.leave(this.#request, this);
    if (leftMs <= 0 || isRefusedByLine || isFinal(this.#lastDenial, refusal, this.#endMs)) {
      this.#deny(denied);
    } else if (refusal === null || next === null) {
      // A denial as `contended` or `paused`: no limit refused, so there is no line to join.
      this.leaveLine();
      withoutLimit.join(this.#request, this);
      this.#waitingSinceMs ??= this.#context.clock.now();
      const pauseMs = Math.min(leftMs, Math.max(1, denied.retryAfterMs ?? 1));
      this.#stopTimer = startTimer(this.#context.clock, pauseMs, () => this.ask());
    } else if (next === this.#line) {
      this.#moveTo(next, refusal.requested);
      next.rejoin(this, refusal.available);
    } else {
      this.leaveLine();
      this.#moveTo(next, refusal.requested);
      next.join(this);
    }
  }

  #moveTo(line: WaitingLine, tokens: number): void {
    const { clock } = this.#context;
    this.#waitingSinceMs ??= clock.now();
    this.#line = line;
    this.tokens = tokens;
    this.#stopTimer = startTimer(clock, this.#endMs - clock.now(), () => this.#timeIsOver(line));
  }

  leaveLine(): WaitingLine | null {
    const line = this.#line;
    line?.leave(this);
    this.#line = null;
    return line;
  }

  #timeIsOver(line: WaitingLine): void {
    // The line may send the ask of this waiter at this instant.
    line.serve();
    if (this.#isAsking || line.sendLast(this)) return;
    const denied = denialAtTimeout(line, this.tokens, this.#lastDenial, this.#context.clock.now());
    if (denied !== null) {
      this.#deny(denied);
      return;
    }
    // The waiter joined without asking first. It asks once now, like a call without a wait.
    this.leaveLine();
    this.ask();
    line.serve();
  }

  #deny(denied: Denied): void {
    this.#end(() => this.caller.resolve(denied, this.#waitingSinceMs));
  }

  #end(settle: () => void): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#stopTimer?.();
    this.#request.signal?.removeEventListener('abort', this.#onAbort);
    this.#context.lines.exit(this);
    this.#context.lines.withoutLimit.leave(this.#request, this);
    const line = this.leaveLine();
    settle();
    line?.serve();
  }
}

function isFull(line: WaitingLine, { wait }: AcquireRequest): boolean {
  return line.depth >= (wait?.maxWaiting ?? Number.POSITIVE_INFINITY);
}

function asMade(decision: Decision): Decision {
  return decision;
}
