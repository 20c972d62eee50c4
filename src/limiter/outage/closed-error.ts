import { BackendUnavailable } from '../../core/errors.js';

/** What every call of a closed limiter rejects with, and every call that waits when it is closed. */
export function closedError(): BackendUnavailable {
  return new BackendUnavailable('The limiter is closed', 'closed');
}
