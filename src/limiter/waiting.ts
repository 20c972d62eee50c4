import { conclude } from '../core/decide.js';
import { buildBucketKey, checkEntityId, checkResource } from '../core/identifiers.js';
import type { EpochMs } from '../core/units.js';
import { attempt, byPolicy } from './acquire.js';
import type { Ask } from './ask.js';
import type { Context } from './context.js';
import type { Decision, Denied } from './decision.js';
import { bucketResource } from './levels.js';
import { statusesOf } from './outcome.js';
import { type AcquireRequest, checkRequest, readAmounts } from './request.js';
import { peekRequest } from './status.js';

/** Slots are given back at any time, so that whoever waits for one asks again this often. */
const ASK_AGAIN_MS = { least: 100, most: 250 };

const WOKEN = Symbol('woken');

/**
 * Waits in line, then asks until granted or out of time. Within a process the first to come is the first to be served;
 * a rate whose announced wait is longer than the time left is denied at once.
 */
export async function attemptUntil(context: Context, request: AcquireRequest): Promise<Decision> {
  checkRequest(request);
  checkEntityId(request.entityId);
  checkResource(request.resource);
  const named = readAmounts('consume', request.consume, 0);
  const { lines, clock } = context;
  const timeoutMs = request.wait?.timeoutMs ?? 0;
  request.signal?.throwIfAborted();
  const endMs = clock.now() + timeoutMs;
  const line = buildBucketKey(request.entityId, bucketResource(request));
  const turn = new Alarm(context, request.signal);
  lines.join(line, turn.ring);
  try {
    if (!(await turn.rings(timeoutMs)))
      return await denialInLine(context, { request, named, nowMs: clock.now(), wants: 'decision' });
    return await askUntil(context, request, endMs);
  } finally {
    turn.dispose();
    lines.leave(line, turn.ring);
  }
}

async function askUntil(context: Context, request: AcquireRequest, endMs: EpochMs): Promise<Decision> {
  const { lines, clock } = context;
  let keys = [buildBucketKey(request.entityId, request.resource)];
  for (;;) {
    // Set before the question, so that what is given back while it is being answered is not missed.
    const alarm = new Alarm(context, request.signal);
    lines.listen(keys, alarm.ring);
    try {
      const decision = await attempt(context, request, 'decision', (made) => made);
      const pauseMs = decision.granted ? null : pauseBefore(decision, endMs - clock.now(), context.random);
      if (pauseMs === null || decision.granted) return decision;
      const blocking = decision.violations.map(({ entityId }) => buildBucketKey(entityId, request.resource));
      lines.listen(blocking, alarm.ring);
      keys = [...new Set([...keys, ...blocking])];
      await alarm.rings(pauseMs);
    } finally {
      alarm.dispose();
      lines.unlisten(keys, alarm.ring);
    }
  }
}

/** How long to pause before asking again; null: asking again within the time left is no use. */
function pauseBefore(denied: Denied, leftMs: number, random: () => number): number | null {
  if (denied.reason === 'impossible' || leftMs <= 0) return null;
  const waits = (kind: 'rate' | 'concurrent'): number[] =>
    denied.violations.filter(({ limit }) => limit.kind === kind).map(({ retryAfterMs }) => retryAfterMs ?? 0);
  const rateMs = Math.max(0, ...waits('rate'));
  if (rateMs > leftMs) return null;
  if (denied.reason === 'contended') return Math.min(leftMs, Math.max(1, denied.retryAfterMs ?? 1));
  if (waits('concurrent').length === 0) return rateMs;
  const askAgainMs = ASK_AGAIN_MS.least + Math.floor(random() * (ASK_AGAIN_MS.most - ASK_AGAIN_MS.least));
  return Math.min(leftMs, Math.max(rateMs, Math.min(askAgainMs, ...waits('concurrent'))));
}

/** Out of time before it was its turn: says how things stand, without asking past those before it. */
async function denialInLine(context: Context, ask: Ask): Promise<Decision> {
  const { request } = ask;
  let peeked: Awaited<ReturnType<typeof peekRequest>>;
  try {
    peeked = await peekRequest(context, request);
  } catch (error) {
    return byPolicy(context, ask, error);
  }
  const { levels, answers } = peeked;
  const conclusion = conclude(answers);
  const statuses = statusesOf(levels, answers, request.resource, false);
  const violations = statuses.filter(({ exceeded }) => exceeded);
  const base = { granted: false, statuses, violations, decidedBy: 'store' } as const;
  if (conclusion.granted) return { ...base, reason: 'contended', retryAfterMs: ASK_AGAIN_MS.least };
  return { ...base, reason: conclusion.reason, retryAfterMs: conclusion.retryAfterMs };
}

/** A sleep that others can end, and that ends with the caller's signal. It leaves no timer and no listener behind. */
class Alarm {
  readonly #context: Context;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly ring = (): void => this.#stop.abort(WOKEN);
  readonly #leave = (): void => this.#stop.abort(this.#signal?.reason);

  constructor(context: Context, signal: AbortSignal | undefined) {
    this.#context = context;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#leave, { once: true });
  }

  /** True: it was rung within `ms`. Throws the reason of the caller's signal. */
  async rings(ms: number): Promise<boolean> {
    try {
      this.#stop.signal.throwIfAborted();
      await this.#context.clock.sleep(ms, this.#stop.signal);
      return false;
    } catch (reason) {
      if (reason === WOKEN) return true;
      throw reason;
    }
  }

  dispose(): void {
    this.#signal?.removeEventListener('abort', this.#leave);
  }
}
