import { expect, test } from 'vitest';
import type { LimitStatus } from '../../core/bucket/decide.js';
import { Limit } from '../../core/limit.js';
import type { Denied } from '../acquire/decision.js';
import { denialAtTimeout, isFinal, refusalToWaitFor } from './waiter-denials.js';

const RPM = Limit.perMinute('rpm', 60);
const TPM = Limit.perMinute('tpm', 600);
const SLOTS = Limit.concurrent('slots', 2);

function refused(limit: Limit, retryAfterMs: number | null): LimitStatus {
  return { entityId: 'a', resource: 'r', limit, available: 0, requested: 1, exceeded: true, retryAfterMs };
}

function denied(
  reason: Denied['reason'],
  retryAfterMs: number | null,
  violations: readonly LimitStatus[] = [],
): Denied {
  return { granted: false, reason, retryAfterMs, statuses: violations, violations, decidedBy: 'store' };
}

const exhausted = (...violations: readonly LimitStatus[]): Denied =>
  denied('exhausted', violations[0]?.retryAfterMs ?? null, violations);

test('a waiter waits for the rate with the longest wait, and for slots only if no rate refused', () => {
  const [short, long, slots] = [refused(RPM, 100), refused(TPM, 200), refused(SLOTS, 9_000)];
  expect(refusalToWaitFor(exhausted(short, long, slots))).toBe(long);
  expect(refusalToWaitFor(exhausted(slots, short))).toBe(short);
  expect(refusalToWaitFor(exhausted(slots))).toBe(slots);
  expect(refusalToWaitFor(denied('contended', 100))).toBeNull();
});

test('the denial of a rate is final exactly if its wait is longer than the time left', () => {
  const refusal = refused(RPM, 1_000);
  const last = { denied: exhausted(refusal), askedMs: 5_000 };
  expect(isFinal(last, refusal, 6_000)).toBe(false);
  expect(isFinal(last, refusal, 5_999)).toBe(true);
});

test('the denial of slots is not final, however late their leases expire', () => {
  const refusal = refused(SLOTS, 60_000);
  expect(isFinal({ denied: exhausted(refusal), askedMs: 0 }, refusal, 1)).toBe(false);
});

test.each([
  { reason: 'impossible', retryAfterMs: 0, final: true },
  { reason: 'contended', retryAfterMs: 100, final: false },
  { reason: 'paused', retryAfterMs: 10, final: false },
  { reason: 'paused', retryAfterMs: 11, final: true },
  { reason: 'paused', retryAfterMs: null, final: true },
] as const)('with 10 ms left, a denial as $reason for $retryAfterMs ms is final: $final', (given) => {
  const last = { denied: denied(given.reason, given.retryAfterMs), askedMs: 0 };
  expect(isFinal(last, null, 10)).toBe(given.final);
});

test('at its timeout a waiter gets its last denial, with the wait of the line and the other waits counted down', () => {
  const [ofLine, other] = [refused(RPM, 1_000), refused(SLOTS, 500)];
  const line = { isHeld: false, outlook: { lastRefusal: ofLine }, allServedInMs: () => 4_000, refuse: () => ofLine };
  const answer = denialAtTimeout(line, 1, { denied: exhausted(ofLine, other), askedMs: 0 }, 200);
  expect(answer?.violations.map(({ retryAfterMs }) => retryAfterMs)).toEqual([4_000, 300]);
  expect(answer?.retryAfterMs).toBe(4_000);
});

test('at its timeout a waiter that never asked may ask, unless waiters of higher priority need the tokens', () => {
  const status = refused(RPM, 7);
  const line = { isHeld: false, outlook: { lastRefusal: status }, allServedInMs: () => 7, refuse: () => status };
  expect(denialAtTimeout(line, 1, null, 0)).toBeNull();
  expect(denialAtTimeout({ ...line, isHeld: true }, 1, null, 0)).toMatchObject({
    reason: 'exhausted',
    violations: [status],
    decidedBy: 'deny-cache',
  });
});
