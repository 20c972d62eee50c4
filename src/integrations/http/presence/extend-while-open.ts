import { isHeadgateError } from '../../../core/errors.js';

/** What the middleware needs of a lease: of the library or of `headgate/client`. */
export interface HttpLease {
  readonly expiresAt: Date | null;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  extend(): Promise<unknown>;
}

/** The shortest and the longest pause between two extensions, as in `run` of the client. */
const SHORTEST_MS = 1_000;
const LONGEST_MS = 20_000;

/**
 * Extends a lease that has a holder after each third of its lifetime, until the returned function is called. The expiry is a
 * time of the store, from which the clock of this machine may differ: what is left is used within bounds only.
 */
export function extendWhileOpen(lease: HttpLease, onError: (error: unknown) => void): () => void {
  const { expiresAt } = lease;
  if (expiresAt === null) return () => {};
  const everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (expiresAt.getTime() - Date.now()) / 3));
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
