import { attempt, attemptWithoutStore, tell } from './acquire/acquire.js';
import type { Ask } from './acquire/ask.js';
import type { Decision } from './acquire/decision.js';
import type { AcquireRequest } from './acquire/request.js';
import type { Context } from './context.js';
import type { NamespaceConnection } from './namespace-connection.js';
import { closedError } from './outage/closed-error.js';
import { attemptUntil } from './waiting/waiting.js';

/** Decides one call of a limiter, at once or after a wait, and tells the decision. Opens the namespace if it is not open. */
export function decideCall<T>(
  connection: NamespaceConnection,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: (decision: Decision) => T,
): Promise<T> {
  const { context } = connection;
  if (context !== null) return decideIn(context, connection, request, wants, finish);
  // Attempts to open the store run in the background. This call does not wait for one.
  const { outage } = connection;
  if (outage !== null && !connection.isClosed) return decideUnopened(connection, request, outage, finish);
  return connection.open().then(
    (opened) => {
      if (connection.isClosed) throw closedError();
      return decideIn(opened, connection, request, wants, finish);
    },
    (error: unknown) => {
      if (connection.isClosed) throw error;
      return decideUnopened(connection, request, error, finish);
    },
  );
}

/** `owner`: its `close` ends the wait. */
function decideIn<T>(
  context: Context,
  owner: object,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: (decision: Decision) => T,
): Promise<T> {
  const { onDecision, onEvent } = context.options;
  const end: (decision: Decision, waitedMs?: number) => T =
    onDecision === null && onEvent === null ? finish : told(context, request, finish);
  if (request?.wait === undefined) return attempt(context, request, wants, end);
  return attemptUntil(context, request, owner).then(({ decision, waitedMs }) => end(decision, waitedMs));
}

function decideUnopened<T>(
  connection: NamespaceConnection,
  request: AcquireRequest,
  error: unknown,
  finish: (decision: Decision) => T,
): Promise<T> {
  const context = connection.unopenedContext();
  return attemptWithoutStore(context, request, error, told(context, request, finish));
}

function told<T>(context: Context, request: AcquireRequest, finish: (decision: Decision) => T) {
  const startMs = context.clock.now();
  return (decision: Decision, waitedMs?: number): T => {
    tell(context, request, decision, startMs, waitedMs);
    return finish(decision);
  };
}
