import { BackendUnavailable } from '../../core/errors.js';

/** The error of every call to a closed limiter, and of every call that waits when the limiter is closed. */
export function closedError(): BackendUnavailable {
  return new BackendUnavailable('The limiter is closed', 'closed');
}
