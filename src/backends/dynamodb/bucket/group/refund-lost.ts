import { BackendUnavailable } from '../../../../core/errors.js';

/** A refund that may or may not have been written. It must not be repeated, because it could count twice. */
export class RefundLost extends BackendUnavailable {
  constructor(cause: unknown) {
    const kind = cause instanceof BackendUnavailable ? cause.kind : 'timeout';
    const message =
      'A refund got no answer; it is not sent again, because it could count twice: the tokens may stay taken';
    super(message, kind, { cause });
  }
}
