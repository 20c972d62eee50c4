import { HeadgateError } from '../core/errors.js';
import { type OnThrow, runInScope, wayAfter } from '../core/lease-scope.js';
import type { RemoteLease } from './remote-lease.js';

export type OnError = (error: unknown, where: string) => void;

export interface Running {
  /** The lifetime that the request asked for. */
  readonly leaseTtlMs: number | undefined;
  /** The limits that a commit may set to zero: rates, not slots. */
  readonly rates: readonly string[];
  readonly onThrow: OnThrow;
  readonly onError: OnError;
}

/** The shortest and the longest pause between two extensions where only the time of the expiry is known. */
const SHORTEST_MS = 1_000;
const LONGEST_MS = 20_000;

/**
 * Runs `work` under a lease, as the library does. A failed commit or rollback reaches `onError` and not the caller.
 */
export async function runUnder<T, L extends string>(
  lease: RemoteLease<L>,
  work: (lease: RemoteLease<L>) => T | Promise<T>,
  running: Running,
): Promise<T> {
  const grantedMs = Date.now();
  return runInScope(
    {
      keepExtending: () => keepExtending(lease, running, Date.now() - grantedMs),
      commit: () => endQuietly(lease, 'run commit', running, () => lease.commit()),
      endAfterThrow: (error) => endAfterThrow(lease, running, error),
    },
    () => work(lease),
  );
}

async function endAfterThrow(lease: RemoteLease, running: Running, error: unknown): Promise<void> {
  const { onThrow, rates, onError } = running;
  await endQuietly(lease, 'run rollback', running, () => {
    const way = wayAfter(onThrow, error, (thrown) => onError(thrown, 'run rollback'));
    return way === 'commit' ? lease.commit() : giveBack(lease, rates);
  });
}

/** Settled limits stay: `work` has stated what they cost. */
async function giveBack<L extends string>(lease: RemoteLease<L>, rates: readonly string[]): Promise<void> {
  if (lease.token === null) return;
  const { settledNames } = lease;
  if (settledNames.size === 0) return lease.rollback();
  const unsettled = rates.filter((name) => !settledNames.has(name));
  await lease.commit(Object.fromEntries(unsettled.map((name) => [name, 0])) as { readonly [Name in L]?: number });
}

async function endQuietly(
  lease: RemoteLease,
  where: string,
  { onError }: Running,
  end: () => Promise<void>,
): Promise<void> {
  if (lease.state !== 'open') return;
  try {
    await end();
  } catch (error) {
    onError(error, where);
  }
}

/**
 * Extends the lease after each third of its lifetime, and at once if much of it has passed: a generator may be iterated
 * late. Returns the function that ends it.
 */
function keepExtending(lease: RemoteLease, { leaseTtlMs, onError }: Running, passedMs: number): () => void {
  let isEnded = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const extendAfter = (pauseMs: number): void => {
    timer = setTimeout(() => void extend(), pauseMs);
  };
  const extend = async (): Promise<void> => {
    try {
      await lease.extend();
    } catch (error) {
      if (isEnded || lease.state !== 'open') return;
      onError(error, 'run extend');
      if (error instanceof HeadgateError && error.code === 'lease.closed') return;
    }
    if (!isEnded && lease.state === 'open') extendAfter(pauseOf(lease, leaseTtlMs));
  };
  if (lease.token !== null && lease.expiresAt !== null) {
    extendAfter(passedMs < SHORTEST_MS ? pauseOf(lease, leaseTtlMs) : 0);
  }
  return () => {
    isEnded = true;
    clearTimeout(timer);
  };
}

/** The clock of this machine may differ from the clock of the store, so that the time left is used within bounds only. */
function pauseOf({ expiresAt }: RemoteLease, leaseTtlMs: number | undefined): number {
  if (leaseTtlMs !== undefined) return Math.ceil(leaseTtlMs / 3);
  const leftMs = expiresAt === null ? LONGEST_MS : expiresAt.getTime() - Date.now();
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, Math.ceil(leftMs / 3)));
}
