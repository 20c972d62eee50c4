import { gainsTokens } from '../../../core/bucket/bucket.js';
import type { LimitStatus } from '../../../core/bucket/decide.js';
import type { Limit } from '../../../core/limit.js';
import { hasBalance, holdsSlots } from '../../../core/limit-kind.js';

/**
 * `draft-10`: `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10. `draft-6`: the older triple
 * `RateLimit-Limit`, `-Remaining`, `-Reset`. `x-ratelimit`: the same triple with the prefix `X-`.
 */
export type HeaderFormat = 'draft-10' | 'draft-6' | 'x-ratelimit' | 'none';

export const HEADER_FORMATS: readonly HeaderFormat[] = ['draft-10', 'draft-6', 'x-ratelimit', 'none'];

/** What a decision says about its limits. */
export interface DecidedLimits {
  readonly granted: boolean;
  readonly statuses: readonly LimitStatus[];
  /** null: waiting does not help, or the ask was granted. */
  readonly retryAfterMs: number | null;
}

export interface HeaderOptions {
  readonly format: HeaderFormat;
  /** Bytes in base64 that tell the partitions of a policy apart without naming the entity. Left out: no `pk`. */
  readonly partitionKey?: (entityId: string) => string;
}

/** A field and its value. Append it: an origin or another limiter may have set the same field. */
export type HeaderLine = readonly [name: string, value: string];

/** The header lines of a decision. A limit that several levels have is described by the level with the least left. */
export function rateLimitHeaders(decision: DecidedLimits, options: HeaderOptions): readonly HeaderLine[] {
  const limits = tightestLevels(decision.statuses);
  return [...retryLines(decision), ...formatLines(limits, decision, options)];
}

/** Both forms of the wait: whole seconds for every client, milliseconds for the SDKs that read them. */
function retryLines({ granted, retryAfterMs }: DecidedLimits): readonly HeaderLine[] {
  if (granted || retryAfterMs === null) return [];
  return [
    ['Retry-After', String(wholeSeconds(retryAfterMs))],
    ['retry-after-ms', String(Math.min(retryAfterMs, MAX_FIELD))],
  ];
}

function formatLines(
  limits: readonly LimitStatus[],
  decision: DecidedLimits,
  { format, partitionKey }: HeaderOptions,
): readonly HeaderLine[] {
  if (limits.length === 0) return [];
  switch (format) {
    case 'none':
      return [];
    case 'draft-10':
      return [
        ['RateLimit-Policy', limits.map((status) => policyItem(status, partitionKey)).join(', ')],
        ['RateLimit', limits.map((status) => limitItem(status, decision, partitionKey)).join(', ')],
      ];
    case 'draft-6':
      return tripleLines('', limits, decision);
    case 'x-ratelimit':
      return tripleLines('X-', limits, decision);
  }
}

/** The older triple has room for one limit: the one that refused, or the one with the smallest part left. */
function tripleLines(prefix: string, limits: readonly LimitStatus[], decision: DecidedLimits): readonly HeaderLine[] {
  const [tightest] = limits.toSorted((a, b) => shareLeft(a) - shareLeft(b));
  if (tightest === undefined) return [];
  return [
    [`${prefix}RateLimit-Limit`, String(tightest.limit.capacity)],
    [`${prefix}RateLimit-Remaining`, String(remaining(tightest))],
    [`${prefix}RateLimit-Reset`, String(resetSeconds(tightest, decision) ?? 0)],
  ];
}

/** A limit does not change, and the same few are in every answer. */
const policies = new WeakMap<Limit, string>();

/** `"rpm";q=100;w=60`: the quota and its window. */
function policyItem({ limit, entityId }: LimitStatus, partitionKey: HeaderOptions['partitionKey']): string {
  let policy = policies.get(limit);
  if (policy === undefined) {
    policy = policyOf(limit);
    policies.set(limit, policy);
  }
  return policy + partition(entityId, partitionKey);
}

/** Slots have no window. */
function policyOf({ name, kind, capacity, refillPeriodMs }: Limit): string {
  const unit = holdsSlots(kind) ? ';qu="concurrent-requests"' : unitOf(name);
  const window = holdsSlots(kind) ? '' : `;w=${wholeSeconds(refillPeriodMs)}`;
  return `"${name}";q=${capacity}${unit}${window}`;
}

/** Requests are the default unit. Limits whose name speaks of tokens count tokens. */
function unitOf(name: string): string {
  return /^(?:.*[_.-])?(?:tp[smhd]|.*tokens?)$/i.test(name) ? ';qu="tokens"' : '';
}

/** `"rpm";r=12;t=31`: what is left, never below 0, and the seconds until more is there. */
function limitItem(status: LimitStatus, decision: DecidedLimits, partitionKey: HeaderOptions['partitionKey']): string {
  const seconds = resetSeconds(status, decision);
  const reset = seconds === null ? '' : `;t=${seconds}`;
  return `"${status.limit.name}";r=${remaining(status)}${reset}${partition(status.entityId, partitionKey)}`;
}

function partition(entityId: string, partitionKey: HeaderOptions['partitionKey']): string {
  return partitionKey === undefined ? '' : `;pk=:${partitionKey(entityId)}:`;
}

/**
 * The seconds until a limit that refused grants the ask; until a rate is full for a limit that did not refuse. null where
 * no time is known. On a denial only limits that refused have a time, so that `Retry-After` is never earlier than it.
 */
function resetSeconds({ limit, available, exceeded, retryAfterMs }: LimitStatus, { granted }: DecidedLimits) {
  if (exceeded) return retryAfterMs === null ? null : wholeSeconds(retryAfterMs);
  if (!granted || !gainsTokens(limit)) return null;
  return wholeSeconds(((limit.capacity - available) * limit.refillPeriodMs) / limit.refillAmount);
}

/** An integer of a structured field has at most 15 digits (RFC 9651). A debt of 31 million years may have more. */
const MAX_FIELD = 999_999_999_999_999;

/** Rounded up: a client that waits this long finds the tokens there. */
function wholeSeconds(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), MAX_FIELD);
}

function remaining({ available }: LimitStatus): number {
  return Math.max(0, available);
}

function tightestLevels(statuses: readonly LimitStatus[]): readonly LimitStatus[] {
  const byName = new Map<string, LimitStatus>();
  for (const status of statuses) {
    // A shadow limit refuses nothing: a client must not hold back because of it.
    if (!hasBalance(status.limit.kind) || status.shadow === true) continue;
    const known = byName.get(status.limit.name);
    if (known === undefined || isTighter(status, known)) byName.set(status.limit.name, status);
  }
  return [...byName.values()];
}

/** A level that refused is tighter than one that did not; of two that refused, the one with the longer wait. */
function isTighter(a: LimitStatus, b: LimitStatus): boolean {
  if (a.exceeded !== b.exceeded) return a.exceeded;
  if (a.exceeded) return waitOf(a) > waitOf(b);
  return a.available < b.available;
}

function waitOf({ retryAfterMs }: LimitStatus): number {
  return retryAfterMs ?? Number.POSITIVE_INFINITY;
}

function shareLeft({ exceeded, available, limit }: LimitStatus): number {
  return exceeded ? -1 : available / Math.max(1, limit.capacity);
}
