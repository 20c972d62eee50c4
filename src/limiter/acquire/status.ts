import type { LevelAnswer, LevelAsk } from '../../backend.js';
import { leastOf } from '../../core/bucket/at-most.js';
import type { AskedAmount, LimitStatus } from '../../core/bucket/decide.js';
import { concludeAt } from '../../core/bucket/conclude.js';
import { LimitsNotConfigured } from '../../core/errors.js';
import type { Limit } from '../../core/limit.js';
import { pauseWaitMs } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import type { CachedConfig } from '../config/config-cache.js';
import { levelsToAsk } from './acquire.js';
import { callStore, type Context, endOfCall, timeLeft } from '../context.js';
import { statusesOf } from './outcome.js';
import { findPause, type FoundPause, laterFound } from '../config/find-pause.js';
import { findPauseIn, viewFoundPause } from './paused.js';
import { type AcquireRequest, checkRequest, readAmounts } from './request.js';

/** Whose limits to read. */
export interface StatusRequest {
  readonly entityId: string;
  readonly resource: string;
}

interface Peeked {
  readonly levels: readonly LevelAsk[];
  readonly answers: readonly LevelAnswer[];
  /** The pause of any level, also of one without limits, that refuses now. */
  readonly pause: FoundPause | null;
}

/** The current state of every limit of every level that can refuse. */
export async function status(context: Context, request: StatusRequest): Promise<LimitStatus[]> {
  return show(await peekEverything(context, request), request);
}

/** A pause refuses the ask at every level, so each status says it. */
function show({ levels, answers, pause }: Peeked, { resource }: StatusRequest): LimitStatus[] {
  const statuses = statusesOf(levels, answers, resource, false);
  if (pause === null) return [...statuses];
  const paused = viewFoundPause(pause);
  return statuses.map((each) => ({ ...each, paused }));
}

async function peekEverything(context: Context, request: StatusRequest): Promise<Peeked> {
  checkRequest(request);
  const nowMs = context.clock.now();
  const endMs = endOfCall(context, nowMs);
  const known = await context.resolver.chain(request.entityId, request.resource, nowMs, endMs);
  const chain = known[0]?.resolved.limits.length === 0 ? await context.resolver.renewChain(known, nowMs, endMs) : known;
  const levels = chain.flatMap(({ entityId, resource, resolved: { limits, version, bypasses } }) =>
    limits.length === 0
      ? []
      : [{ entityId, resource, limits, version, asks: optionsOf(limits, bypasses), holder: null }],
  );
  if (chain[0]?.resolved.limits.length === 0) throw new LimitsNotConfigured(request.entityId, request.resource);
  const answers = await peek(context, levels, nowMs);
  return { levels, answers, pause: pauseOf(chain, levels, answers, nowMs) };
}

/** The config may be older than the buckets, and a level without limits has only the config. */
function pauseOf(
  chain: readonly CachedConfig[],
  levels: readonly LevelAsk[],
  answers: readonly LevelAnswer[],
  nowMs: EpochMs,
): FoundPause | null {
  const known = findPause(chain, nowMs);
  const found = findPauseIn(levels, answers, nowMs);
  return found === null ? known : laterFound(known, found, nowMs);
}

/** A limit that is not named is asked for 0. A shadow, and one with a `warnAt`, are named, so that their statuses say it. */
function optionsOf(limits: readonly Limit[], bypasses: boolean): readonly AskedAmount[] {
  return limits.flatMap(({ name, warnAt, shadow }) => {
    const options = {
      ...(warnAt === undefined ? {} : { warnAt }),
      ...(shadow || bypasses ? ({ shadow: true } as const) : {}),
    };
    return Object.keys(options).length === 0 ? [] : [{ name, milli: 0, ...options }];
  });
}

/** The available tokens of each limit, at the level that has the fewest; `Infinity` where every level is unlimited. */
export async function available(context: Context, request: StatusRequest): Promise<Record<string, number>> {
  const tightest = new Map<string, number>();
  const { levels, answers } = await peekEverything(context, request);
  for (const { verdicts } of answers) {
    for (const { limit } of verdicts) tightest.set(limit.name, Number.POSITIVE_INFINITY);
  }
  for (const { limit, available: left } of statusesOf(levels, answers, request.resource, false)) {
    tightest.set(limit.name, Math.min(left, tightest.get(limit.name) ?? left));
  }
  return Object.fromEntries(tightest);
}

/** The wait until the request would be granted; null: never. */
export async function timeUntilAvailable(context: Context, request: AcquireRequest): Promise<number | null> {
  checkRequest(request);
  const nowMs = context.clock.now();
  const endMs = endOfCall(context, nowMs);
  const chain = await context.resolver.chain(request.entityId, request.resource, nowMs, endMs);
  const pause = findPause(chain, nowMs);
  if (pause !== null) return pauseWaitMs(pause.pause, nowMs);
  const { answers } = await peekChain(context, request, chain, nowMs);
  const conclusion = concludeAt(answers, nowMs);
  return conclusion.granted ? 0 : conclusion.retryAfterMs;
}

/** The statuses of the decision that the request would get now. Takes nothing. */
export async function peekStatuses(context: Context, request: AcquireRequest): Promise<LimitStatus[]> {
  checkRequest(request);
  return show(await peekRequest(context, request), request);
}

/** The answer of each level to a request, without a take. */
async function peekRequest(context: Context, request: AcquireRequest): Promise<Peeked> {
  const nowMs = context.clock.now();
  const endMs = endOfCall(context, nowMs);
  const chain = await context.resolver.chain(request.entityId, request.resource, nowMs, endMs);
  return peekChain(context, request, chain, nowMs);
}

/** `nowMs` is the start of the call: the read of the chain is part of its time. */
async function peekChain(
  context: Context,
  request: AcquireRequest,
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
): Promise<Peeked> {
  const named = readAmounts('consume', request.consume, 0);
  const levels = await levelsToAsk(context, { request, named, nowMs }, chain);
  const answers = await peek(context, levels, nowMs);
  const asked = answers.map((answer, at) => ({
    ...answer,
    verdicts: answer.verdicts.filter(({ limit }) => levels[at]?.asks.some(({ name }) => name === limit.name)),
  }));
  const agreed = request.atMost === undefined ? asked : asAgreed(asked);
  return { levels, answers: agreed, pause: pauseOf(chain, levels, answers, nowMs) };
}

/** All levels take what the level with the least can give of the limit that may be cut. */
function asAgreed(answers: readonly LevelAnswer[]): readonly LevelAnswer[] {
  const least = leastOf(answers);
  if (least === null) return answers;
  return answers.map((answer) => ({
    ...answer,
    verdicts: answer.verdicts.map((verdict) =>
      verdict.cut === true ? { ...verdict, requestedMilli: least } : verdict,
    ),
  }));
}

async function peek(context: Context, levels: readonly LevelAsk[], nowMs: number): Promise<readonly LevelAnswer[]> {
  const where = 'reading a status';
  const timeoutMs = timeLeft(context, endOfCall(context, nowMs), where);
  const answers = await callStore(context, where, (call) => context.backend.peek(call, levels), nowMs, timeoutMs);
  for (const [at, { configIsOlder }] of answers.entries()) {
    const level = levels[at];
    if (configIsOlder && level !== undefined) context.resolver.reread(level.entityId, level.resource, nowMs);
  }
  return answers;
}
