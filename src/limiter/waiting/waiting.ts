import type { EpochMs } from '../../core/units.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { attempt } from '../acquire/acquire.js';
import type { Context } from '../context.js';
import type { Decision } from '../acquire/decision.js';
import { type AcquireRequest, checkRequest, readAmounts } from '../acquire/request.js';
import { Waiter } from './waiter.js';

/** A decision, and how long the call waited for it after its first refusal. */
interface Waited {
  readonly decision: Decision;
  readonly waitedMs: number;
}

/**
 * Asks, and after a denial waits for a grant for up to `wait.timeoutMs`. Within a process the waiters of one limit are
 * served in the order of their arrival. A call is denied at once if the announced wait of a rate exceeds the time left.
 * `owner`: the connection whose `close` ends the wait.
 */
export async function attemptUntil(context: Context, request: AcquireRequest, owner: object): Promise<Waited> {
  checkRequest(request);
  checkEntityId(request.entityId);
  checkResource(request.resource);
  readAmounts('consume', request.consume, 0);
  request.signal?.throwIfAborted();
  const timeoutMs = request.wait?.timeoutMs ?? 0;
  if (timeoutMs === 0) return attempt(context, request, 'decision', (decision) => ({ decision, waitedMs: 0 }));
  return new Promise((settle, reject) => {
    const resolve = (decision: Decision, waitingSinceMs: EpochMs | null): void => {
      const waitedMs = waitingSinceMs === null ? 0 : Math.max(0, context.clock.now() - waitingSinceMs);
      settle({ decision, waitedMs });
    };
    new Waiter(context, request, timeoutMs, { owner, resolve, reject }).start();
  });
}
