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
      endAfterThrow: (error) => quietly(runtime, 'run rollback', () => endAfterThrow(runtime, lease, onThrow, error)),
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

async function endAfterThrow(runtime: Runtime, lease: Lease, onThrow: OnThrow, error: unknown): Promise<void> {
  const way = wayAfter(onThrow, error, (thrown) => report(runtime.options, thrown, 'run rollback'));
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

/** The shortest pause between two tries to extend, where the lease has little time left or none. */
const SHORTEST_MS = 1_000;

/** Extends the lease after each third of the time that it has left, in the background. */
function keepExtending(runtime: Runtime, lease: Lease): () => void {
  const ended = new AbortController();
  void extendUntilEnded();
  return () => ended.abort();

  async function extendUntilEnded(): Promise<void> {
    // A generator may be iterated so late that its lease is about to expire: then the first try comes at once.
    let shortestMs = 0;
    for (let next = leftMs(); next !== null; next = leftMs()) {
      try {
        await runtime.clock.sleep(Math.max(shortestMs, Math.ceil(next / 3)), ended.signal, { background: true });
        shortestMs = SHORTEST_MS;
        await lease.extend();
      } catch (error) {
        if (ended.signal.aborted) return;
        report(runtime.options, error, 'run extend');
        // The lease is lost. `lease.signal` has aborted.
        if (isHeadgateError(error, 'lease.closed')) return;
      }
    }
  }

  /** null: the lease has ended, or has no holder to extend. */
  function leftMs(): number | null {
    const { expiresAt, state } = lease;
    if (expiresAt === null || state === 'committed' || state === 'rolled-back') return null;
    return expiresAt.getTime() - runtime.clock.now();
  }
}
