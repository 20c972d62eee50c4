import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { attempt } from '../acquire/acquire.js';
import type { Context } from '../context.js';
import type { Decision } from '../acquire/decision.js';
import { type AcquireRequest, checkRequest, readAmounts } from '../acquire/request.js';
import { Waiter } from './waiter.js';

/**
 * Asks, and if that is denied waits for up to `wait.timeoutMs` to be granted. Within a process the waiters of one limit
 * are served in the order of their arrival; a rate whose announced wait is longer than the time left is denied at
 * once. `owner`: the limiter that ends the wait when it is closed.
 */
export async function attemptUntil(context: Context, request: AcquireRequest, owner: object): Promise<Decision> {
  checkRequest(request);
  checkEntityId(request.entityId);
  checkResource(request.resource);
  readAmounts('consume', request.consume, 0);
  request.signal?.throwIfAborted();
  const timeoutMs = request.wait?.timeoutMs ?? 0;
  if (timeoutMs === 0) return attempt(context, request, 'decision', (decision) => decision);
  return new Waiter(context, request, timeoutMs, owner).decision;
}
