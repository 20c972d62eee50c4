import { startTimer } from '../../clock.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import { refills } from '../../core/limit-kind.js';
import type { EpochMs } from '../../core/units.js';
import { attempt, giveBack } from '../acquire/acquire.js';
import type { Context } from '../context.js';
import type { Decision, Denied } from '../acquire/decision.js';
import { findHoldingLine } from './holding-line.js';
import type { AcquireRequest } from '../acquire/request.js';
import type { InLine, WaitingLine } from './waiting-line.js';

interface LastDenial {
  readonly denied: Denied;
  readonly askedMs: EpochMs;
}

/**
 * One call that waits. It asks first, like a call without a wait. When it is refused, it joins the line of the limit that
 * refused, and asks again when that line calls `ask`. It ends with a grant, with a denial after its timeout or when no wait
 * helps, or with the abort reason.
 */
export class Waiter implements InLine {
  readonly owner: object;
  readonly order: number;
  readonly sinceMs: EpochMs;
  readonly decision: Promise<Decision>;
  tokens = 0;
  readonly #context: Context;
  readonly #request: AcquireRequest;
  readonly #endMs: EpochMs;
  readonly #stop = new AbortController();
  readonly #onAbort = (): void => this.leave(this.#request.signal?.reason);
  #resolve: (decision: Decision) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  #line: WaitingLine | null = null;
  #isAsking = false;
  #hasEnded = false;
  #waitingSinceMs: EpochMs | null = null;
  #waitedMs = 0;
  #lastDenial: LastDenial | null = null;
  /** A pause denied the last ask, and the next ask is due at its end. */
  #waitsForPause = false;
  #stopTimer: (() => void) | null = null;

  constructor(context: Context, request: AcquireRequest, timeoutMs: number, owner: object) {
    this.#context = context;
    this.#request = request;
    this.sinceMs = context.clock.now();
    this.#endMs = this.sinceMs + timeoutMs;
    this.owner = owner;
    this.order = context.lines.enter(this);
    this.decision = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    request.signal?.addEventListener('abort', this.#onAbort, { once: true });
    const held = findHoldingLine(context, request, this.#endMs);
    if (held === null) {
      this.ask();
      return;
    }
    if (this.#isFull(held.line)) {
      this.#end(() => this.#resolve(denialOf(held.line.refuse(held.tokens))));
      return;
    }
    this.#waitingSinceMs = this.sinceMs;
    this.#moveTo(held.line, held.tokens);
    held.line.joinUnasked(this);
  }

  /** From the first refusal to the decision; 0 if the first ask was decided at once. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  #isFull(line: WaitingLine): boolean {
    return line.depth >= (this.#request.wait?.maxWaiting ?? Number.POSITIVE_INFINITY);
  }

  ask(): void {
    const { clock } = this.#context;
    const askedMs = clock.now();
    this.#isAsking = true;
    this.#waitsForPause = false;
    // The timeout of the wait does not cancel an ask in flight.
    this.#stopTimer?.();
    attempt(this.#context, { ...this.#request, signal: this.#stop.signal }, 'decision', asMade)
      .then((decision) => this.#answered(decision, askedMs))
      .catch((error: unknown) => this.#end(() => this.#reject(error)));
  }

  /** Called when the signal aborts or the limiter is closed. What an ask in flight takes is given back. */
  leave(reason: unknown): void {
    this.#end(() => this.#reject(reason));
    // Without the reason, which may be an error that the guard would count as an answer of the store.
    this.#stop.abort();
  }

  /** Called when this process has ended a pause. */
  askIfPaused(): void {
    if (!this.#waitsForPause) return;
    this.#stopTimer?.();
    this.ask();
  }

  #answered(decision: Decision, askedMs: EpochMs): void {
    this.#isAsking = false;
    if (this.#hasEnded) {
      // The call was aborted between the answer and its delivery.
      if (decision.granted) giveBack(this.#context, decision.lease);
      return;
    }
    const { lines } = this.#context;
    const refusal = decision.granted ? null : refusalToWaitFor(decision);
    const next = refusal === null ? null : lines.open(this.#request, refusal);
    const before = this.#line;
    const concerned = lines.learn(this.#request, decision, askedMs);
    if (decision.granted) this.#end(() => this.#resolve(decision));
    else this.#refused(decision, askedMs, refusal, next);
    if (before !== null && !concerned.includes(before)) before.serveSoon();
    for (const line of concerned) line.serveSoon();
  }

  #refused(denied: Denied, askedMs: EpochMs, refusal: LimitStatus | null, next: WaitingLine | null): void {
    const { clock } = this.#context;
    this.#lastDenial = { denied, askedMs };
    const nowMs = clock.now();
    this.#waitingSinceMs ??= nowMs;
    const leftMs = this.#endMs - nowMs;
    const isPaused = denied.reason === 'paused';
    const isCertain = isPaused || (refusal !== null && refills(refusal.limit.kind));
    const waitMs = isPaused ? denied.retryAfterMs : (refusal?.retryAfterMs ?? 0);
    const waitsTooLong = isCertain && (waitMs === null || askedMs + waitMs > this.#endMs);
    if (denied.reason === 'impossible' || leftMs <= 0 || waitsTooLong) {
      this.#end(() => this.#resolve(denied));
    } else if (refusal === null || next === null) {
      this.leaveLine();
      this.#waitsForPause = isPaused;
      this.#askIn(Math.min(leftMs, Math.max(1, denied.retryAfterMs ?? 1)));
    } else if (next === this.#line) {
      this.#moveTo(next, refusal.requested);
      next.rejoin(this, refusal.available);
    } else if (this.#isFull(next)) {
      this.#end(() => this.#resolve(denied));
    } else {
      this.leaveLine();
      this.#moveTo(next, refusal.requested);
      next.join(this);
    }
  }

  #moveTo(line: WaitingLine, tokens: number): void {
    const { clock } = this.#context;
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

  /** After a denial as `contended` or `paused`: no limit refused, so there is no line to join. */
  #askIn(ms: number): void {
    this.#stopTimer = startTimer(this.#context.clock, ms, () => this.ask());
  }

  #timeIsOver(line: WaitingLine): void {
    // The line may send the ask of this waiter at this instant.
    line.serve();
    if (this.#isAsking || line.sendLast(this)) return;
    if (this.#lastDenial === null && line.isHeld) {
      // An ask now would take the tokens that waiters of higher priority need.
      this.#end(() => this.#resolve(denialOf(line.refuse(this.tokens))));
      return;
    }
    if (this.#lastDenial === null) {
      // The waiter joined without asking first. It asks once now, like a call without a wait.
      this.leaveLine();
      this.ask();
      line.serve();
      return;
    }
    const denied = this.#denialInLine(line, this.#lastDenial);
    this.#end(() => this.#resolve(denied));
  }

  /**
   * The last denial, with its wait reduced by the time since. Another ask could fail, and the outage policy must not
   * replace a denial that is known.
   */
  #denialInLine(line: WaitingLine, { denied, askedMs }: LastDenial): Denied {
    const { lastRefusal } = line;
    const agedMs = this.#context.clock.now() - askedMs;
    const statuses = denied.statuses.map((status) => {
      if (!status.exceeded || status.shadow === true) return status;
      const isOfLine = status.entityId === lastRefusal.entityId && status.limit.name === lastRefusal.limit.name;
      const countedDownMs = Math.max(1, (status.retryAfterMs ?? 1) - agedMs);
      return { ...status, retryAfterMs: isOfLine && refills(status.limit.kind) ? line.allServedInMs() : countedDownMs };
    });
    const violations = statuses.filter(({ exceeded, shadow }) => exceeded && shadow !== true);
    const retryAfterMs = violations.reduce((longestMs, status) => Math.max(longestMs, status.retryAfterMs ?? 1), 1);
    return { ...denied, retryAfterMs, statuses, violations };
  }

  #end(settle: () => void): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#waitsForPause = false;
    if (this.#waitingSinceMs !== null) this.#waitedMs = Math.max(0, this.#context.clock.now() - this.#waitingSinceMs);
    this.#stopTimer?.();
    this.#request.signal?.removeEventListener('abort', this.#onAbort);
    this.#context.lines.exit(this);
    const line = this.leaveLine();
    settle();
    line?.serve();
  }
}

/**
 * The limit whose line to join. A rate comes before slots, because its wait is known and slots may return at any time. Of
 * several, the one with the longest wait. null: no limit refused.
 */
function refusalToWaitFor({ reason, violations }: Denied): LimitStatus | null {
  if (reason !== 'exhausted') return null;
  let found: LimitStatus | null = null;
  for (const status of violations) if (found === null || isLonger(status, found)) found = status;
  return found;
}

/** A denial that this process decides from what it knows of the limit. */
function denialOf(status: LimitStatus): Denied {
  const { retryAfterMs } = status;
  const statuses = [status];
  return { granted: false, reason: 'exhausted', retryAfterMs, statuses, violations: statuses, decidedBy: 'deny-cache' };
}

function isLonger(one: LimitStatus, other: LimitStatus): boolean {
  if (one.limit.kind !== other.limit.kind) return refills(one.limit.kind);
  return (one.retryAfterMs ?? 0) > (other.retryAfterMs ?? 0);
}

function asMade(decision: Decision): Decision {
  return decision;
}
