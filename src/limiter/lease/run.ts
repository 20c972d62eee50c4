import { isHeadgateError, ValidationError } from '../../core/errors.js';
import { report, type StoreContext } from '../store-context.js';
import type { Lease } from './lease.js';

/** What `runUnder` needs besides the lease. */
type Runtime = Pick<StoreContext, 'clock' | 'options'>;

export type OnThrow = 'rollback' | 'commit' | ((error: unknown) => 'rollback' | 'commit');

export interface RunOptions {
  /** What to do with the lease when the function throws. Default: `rollback`. */
  readonly onThrow?: OnThrow;
}

/**
 * Runs `work` under a lease. Commits when it returns; does what `onThrow` says when it throws. The result is returned even
 * if the commit fails, and the error is thrown even if the rollback fails: both failures reach `onError`. For an async
 * generator the lease lasts until the generator ends; leaving it early counts as a throw.
 */
export async function runUnder<T>(
  runtime: Runtime,
  lease: Lease,
  work: (lease: Lease) => T | Promise<T>,
  onThrow: OnThrow = 'rollback',
): Promise<T> {
  const extending = keepExtending(runtime, lease);
  let result: T;
  try {
    result = await work(lease);
  } catch (error) {
    extending.abort();
    await endAfterThrow(runtime, lease, onThrow, error);
    throw error;
  }
  extending.abort();
  if (isAsyncGenerator(result)) return underLease(runtime, lease, result, onThrow) as T;
  await quietly(runtime, 'run commit', () => commitOwn(lease));
  return result;
}

/** Refuses what `runUnder` cannot run, before anything is acquired. */
export function checkRun(work: unknown, onThrow: unknown): void {
  if (onThrow !== undefined && onThrow !== 'rollback' && onThrow !== 'commit' && typeof onThrow !== 'function') {
    throw new ValidationError('onThrow', `'rollback', 'commit' or a function of the error`, onThrow);
  }
  if (typeof work !== 'function') throw new ValidationError('work', 'a function that runs under the lease', work);
}

/**
 * Wraps the generator with its lease. Not an async generator itself, because leaving a generator that was never started
 * runs none of its code. The lease is extended after the first step: if the generator is never iterated, the lease expires.
 */
function underLease<Y, R, N>(
  runtime: Runtime,
  lease: Lease,
  generator: AsyncGenerator<Y, R, N>,
  onThrow: OnThrow,
): AsyncGenerator<Y, R, N> {
  let extending: AbortController | null = null;
  const step = async (take: () => Promise<IteratorResult<Y, R>>, leaving: boolean): Promise<IteratorResult<Y, R>> => {
    extending ??= keepExtending(runtime, lease);
    try {
      const taken = await take();
      if (taken.done !== true) return taken;
      extending.abort();
      if (leaving) await endAfterThrow(runtime, lease, onThrow, new Error('the generator was left early'));
      else await quietly(runtime, 'run commit', () => commitOwn(lease));
      return taken;
    } catch (error) {
      extending.abort();
      await endAfterThrow(runtime, lease, onThrow, error);
      throw error;
    }
  };
  const wrapped = {
    next: (...args: [] | [N]) => step(() => generator.next(...args), false),
    return: (value: R | PromiseLike<R>) => step(() => generator.return(value), true),
    throw: (error: unknown) => step(() => generator.throw(error), false),
    [Symbol.asyncIterator]: () => wrapped,
    [Symbol.asyncDispose]: async () => {
      await wrapped.return(undefined as R);
    },
  } as AsyncGenerator<Y, R, N>;
  return wrapped;
}

async function endAfterThrow(runtime: Runtime, lease: Lease, onThrow: OnThrow, error: unknown): Promise<void> {
  await quietly(runtime, 'run rollback', async () => {
    const way = typeof onThrow === 'function' ? onThrow(error) : onThrow;
    await endOpen(lease, () => (way === 'commit' ? lease.commit() : lease.rollbackUnsettled()));
  });
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

/** Extends the lease after each third of its lifetime, in the background, until aborted. */
function keepExtending(runtime: Runtime, lease: Lease): AbortController {
  const ended = new AbortController();
  const { expiresAt } = lease;
  if (expiresAt !== null) void extendEvery(Math.ceil((expiresAt.getTime() - runtime.clock.now()) / 3));
  return ended;

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

function isAsyncGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, unknown> {
  return Object.prototype.toString.call(value) === '[object AsyncGenerator]';
}
