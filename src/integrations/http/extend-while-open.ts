import { isHeadgateError } from '../../core/errors.js';

/** What the middleware needs of a lease: of the library or of `headgate/client`. */
export interface HttpLease {
  readonly expiresAt: Date | null;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  extend(): Promise<unknown>;
}

/** Extends a lease that has a holder after each third of its lifetime, until the returned function is called. */
export function extendWhileOpen(lease: HttpLease, onError: (error: unknown) => void): () => void {
  const { expiresAt } = lease;
  if (expiresAt === null) return () => {};
  const everyMs = Math.max(1_000, (expiresAt.getTime() - Date.now()) / 3);
  const timer = setInterval(() => {
    lease.extend().catch((error: unknown) => {
      onError(error);
      // The lease is lost: its slots have gone to others.
      if (isHeadgateError(error, 'lease.closed')) clearInterval(timer);
    });
  }, everyMs);
  // Edge runtimes return a number.
  (timer as { unref?: () => void }).unref?.();
  return () => clearInterval(timer);
}
