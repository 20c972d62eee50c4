import assert from 'node:assert/strict';
import type { ErrorCode } from '../../../core/error-codes.js';
import { isHeadgateError } from '../../../core/errors.js';
import type { Denied } from '../../../limiter/acquire/decision.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest, Amounts } from '../../../limiter/acquire/request.js';
import type { UsageRange, Usage } from '../../../limiter/api/usage-api.js';
import type { Fixture } from './fixture.js';

/** The default entity and resource of the cases. */
export const USER = { entityId: 'user-1', resource: 'gpt-4' } as const;

/** Why a case is not run in groups. */
export const COUNTS_ACQUIRES = 'it checks the number of acquires, and the other asks of a group are counted too';

export function ask(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return { ...USER, ...more, consume };
}

export async function denial(limiter: RateLimiter, request: AcquireRequest): Promise<Denied> {
  const decision = await limiter.tryAcquire(request);
  assert.ok(!decision.granted, `granted instead of denied: ${JSON.stringify(request.consume)}`);
  return decision;
}

/** The violations as `entity limit`, in alphabetical order. */
export function refusers(denied: Denied): string[] {
  return denied.violations.map(({ entityId, limit }) => `${entityId} ${limit.name}`).toSorted();
}

/** Checks that the ask is granted after the announced wait and not 1 ms before. Returns the wait; the ask stays granted. */
export async function assertExactWait(
  fixture: Fixture,
  limiter: RateLimiter,
  request: AcquireRequest,
  expectedMs?: number,
): Promise<number> {
  const { retryAfterMs } = await denial(limiter, request);
  assert.ok(retryAfterMs !== null && retryAfterMs > 0);
  if (expectedMs !== undefined) assert.equal(retryAfterMs, expectedMs);
  await fixture.clock.advance(retryAfterMs - 1);
  assert.equal((await denial(limiter, request)).retryAfterMs, 1);
  await fixture.clock.advance(1);
  await limiter.acquire(request);
  return retryAfterMs;
}

export async function assertRejects(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isHeadgateError(error, code), `expected ${code}, got ${String(error)}`);
    return true;
  });
}

/** How many of these concurrent asks are granted. */
export async function countGranted(asks: readonly Promise<{ readonly granted: boolean }>[]): Promise<number> {
  const decisions = await Promise.all(asks);
  return decisions.filter(({ granted }) => granted).length;
}

/** The results of `count` calls of `make`. */
export function times<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

/** All usage of a range, in the order of time. */
export async function listUsage(
  fixture: Fixture,
  limiter: RateLimiter,
  range: Partial<UsageRange> = {},
): Promise<Usage[]> {
  await fixture.catchUp();
  const found: Usage[] = [];
  for await (const usage of limiter.usage.query({ ...USER, window: 'hourly', ...range })) found.push(usage);
  return found;
}

/** The tokens of each window, without limits whose net consumption is 0. */
export function tokensOf(usages: readonly Usage[]): Record<string, number>[] {
  return usages.map(({ tokens }) => Object.fromEntries(Object.entries(tokens).filter(([, count]) => count !== 0)));
}
