import assert from 'node:assert/strict';
import type { Denied } from '../../../limiter/acquire/decision.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { AcquireRequest } from '../../../limiter/acquire/request.js';
import { ask, denial, USER } from './asking.js';
import type { Fixture } from './fixture.js';

/** The target of a pause of the entity itself, on every resource. */
export const ALL = { entityId: USER.entityId } as const;
export const REASON = 'the vendor asked for it';

/** The denial by a pause: it has a reason, and no limit refused. */
export async function pausedDenial(limiter: RateLimiter, request: AcquireRequest): Promise<Denied> {
  const denied = await denial(limiter, request);
  assert.deepEqual([denied.reason, denied.statuses, denied.violations], ['paused', [], []]);
  return denied;
}

/** Two limiters, like two processes, that have both asked once: each has the config and the bucket in its caches. */
export async function twoWarm(fixture: Fixture, ...rules: string[]): Promise<readonly [RateLimiter, RateLimiter]> {
  const pair = [await fixture.limited(...rules), await fixture.limited(...rules)] as const;
  for (const limiter of pair) await limiter.acquire(ask({ rpm: 1 }));
  return pair;
}

export async function family(limiter: RateLimiter): Promise<void> {
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
}
