import { EventEmitter, getMaxListeners, setMaxListeners } from 'node:events';

/** A signal that aborts with that of a caller, and does not refer to it. */
export interface FollowedSignal {
  readonly signal: AbortSignal;
  /** Removes the listener from the signal of the caller. */
  readonly unfollow: () => void;
}

/**
 * A signal for what lasts as long as an answer. Clients keep the answer alive by a listener of their own signal: if it were
 * referred to until the answer has ended, an answer that its caller has dropped could never be collected.
 */
export function followSignal(leader: AbortSignal | null): FollowedSignal {
  const follower = new AbortController();
  const { signal } = follower;
  if (leader === null) return { signal, unfollow: () => {} };
  allowMany(leader);
  const reference = new WeakRef(leader);
  const follow = (): void => follower.abort(reference.deref()?.reason);
  if (leader.aborted) follow();
  else leader.addEventListener('abort', follow);
  return { signal, unfollow: () => reference.deref()?.removeEventListener('abort', follow) };
}

/** Node warns of more than ten listeners. Its own `fetch` allows as many for a signal that many calls share. */
const MANY = 1_500;

function allowMany(signal: AbortSignal): void {
  try {
    if (getMaxListeners(signal) === EventEmitter.defaultMaxListeners) setMaxListeners(MANY, signal);
  } catch {
    // A signal that is not Node's has no such limit.
  }
}
