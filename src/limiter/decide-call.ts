import { attempt, attemptWithoutStore, type Finish } from './acquire/acquire.js';
import { emitDecision } from './acquire/emit-decision.js';
import type { Ask } from './acquire/ask.js';
import type { Decision } from './acquire/decision.js';
import { type AcquireRequest, copyRequest } from './acquire/request.js';
import type { Context } from './context.js';
import type { NamespaceConnection } from './namespace-connection.js';
import { closedError } from './outage/closed-error.js';
import { attemptUntil } from './waiting/waiting.js';

/** Decides one call of a limiter, at once or after a wait, and emits the decision. Opens the namespace if it is not open. */
export function decideCall<T>(
  connection: NamespaceConnection,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: (decision: Decision) => T,
): Promise<T> {
  const { context } = connection;
  try {
    return context === null
      ? openAndDecide(connection, copyRequest(request), wants, finish)
      : decideIn(context, connection, request, wants, finish);
  } catch (error) {
    return Promise.reject(error);
  }
}

function openAndDecide<T>(
  connection: NamespaceConnection,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: (decision: Decision) => T,
): Promise<T> {
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
  const end = endOf(context, finish);
  if (request?.wait === undefined) return attempt(context, request, wants, end);
  const kept = copyRequest(request);
  return attemptUntil(context, kept, owner).then(({ decision, waitedMs }) => end(decision, kept, waitedMs));
}

/** `finish`, after the listeners got the decision. */
type End<T> = (...args: [...Parameters<Finish<T>>, waitedMs?: number]) => T;

function endOf<T>(context: Context, finish: (decision: Decision) => T): End<T> {
  const { onDecision, onEvent } = context.options;
  return onDecision === null && onEvent === null ? finish : afterListeners(context, finish);
}

function decideUnopened<T>(
  connection: NamespaceConnection,
  request: AcquireRequest,
  error: unknown,
  finish: (decision: Decision) => T,
): Promise<T> {
  const context = connection.unopenedContext();
  return attemptWithoutStore(context, request, error, afterListeners(context, finish));
}

function afterListeners<T>(context: Context, finish: (decision: Decision) => T): End<T> {
  const startMs = context.clock.now();
  return (decision, request, waitedMs) => {
    emitDecision(context, request, decision, startMs, waitedMs);
    return finish(decision);
  };
}
