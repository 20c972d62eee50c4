import { isHeadgateError, ValidationError } from '../../core/errors.js';
import { type OnThrow, runInScope, wayAfter } from '../../core/lease-scope.js';
import { report, type StoreContext } from '../store-context.js';
import type { Lease } from './lease.js';

/** What `runUnder` needs besides the lease. */
type Runtime = Pick<StoreContext, 'clock' | 'options'>;

/**
 * Runs `work` under a lease. The result is returned even if the commit fails, and the error is thrown even if the rollback
 * fails: both failures reach `onError`.
 */
export async function runUnder<T>(
  runtime: Runtime,
  lease: Lease,
  work: (lease: Lease) => T | Promise<T>,
  onThrow: OnThrow = 'rollback',
): Promise<T> {
  return runInScope(
    {
      keepExtending: () => keepExtending(runtime, lease),
      commit: () => quietly(runtime, 'run commit', () => commitOwn(lease)),
      endAfterThrow: (error) => quietly(runtime, 'run rollback', () => endAfterThrow(lease, onThrow, error)),
    },
    () => work(lease),
  );
}

/** Refuses what `runUnder` cannot run, before anything is acquired. */
export function checkRun(work: unknown, onThrow: unknown): void {
  if (onThrow !== undefined && onThrow !== 'rollback' && onThrow !== 'commit' && typeof onThrow !== 'function') {
    throw new ValidationError('onThrow', `'rollback', 'commit' or a function of the error`, onThrow);
  }
  if (typeof work !== 'function') throw new ValidationError('work', 'a function that runs under the lease', work);
}

async function endAfterThrow(lease: Lease, onThrow: OnThrow, error: unknown): Promise<void> {
  const way = wayAfter(onThrow, error);
  await endOpen(lease, () => (way === 'commit' ? lease.commit() : lease.rollbackUnsettled()));
}

/** Does nothing if the function has ended its lease itself. */
async function endOpen(lease: Lease, end: () => Promise<void>): Promise<void> {
  if (lease.state === 'open' || lease.state === 'expired') await end();
}

/** A lease whose token was taken is ended by the process that resumes it. */
async function commitOwn(lease: Lease): Promise<void> {
  if (!lease.isHandedOver) await endOpen(lease, () => lease.commit());
}

async function quietly(runtime: Runtime, where: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    report(runtime.options, error, where);
  }
}

/** Extends the lease after each third of its lifetime, in the background. */
function keepExtending(runtime: Runtime, lease: Lease): () => void {
  const ended = new AbortController();
  const { expiresAt } = lease;
  if (expiresAt !== null) void extendEvery(Math.ceil((expiresAt.getTime() - runtime.clock.now()) / 3));
  return () => ended.abort();

  async function extendEvery(everyMs: number): Promise<void> {
    while (lease.expiresAt !== null && lease.state !== 'committed' && lease.state !== 'rolled-back') {
      try {
        await runtime.clock.sleep(everyMs, ended.signal, { background: true });
        await lease.extend();
      } catch (error) {
        if (ended.signal.aborted) return;
        report(runtime.options, error, 'run extend');
        // The lease is lost. `lease.signal` has aborted.
        if (isHeadgateError(error, 'lease.closed')) return;
      }
    }
  }
}
