/** What `run` does with the lease when its function throws. A function decides by the error. */
export type OnThrow = 'rollback' | 'commit' | ((error: unknown) => 'rollback' | 'commit');

/** Options of `run`. */
export interface RunOptions {
  /** What to do with the lease when the function throws. Default: `rollback`. */
  readonly onThrow?: OnThrow;
}

/** How a lease is extended and ended around the work that runs under it. None of these functions throws or rejects. */
export interface LeaseScope {
  /** Extends the lease in the background. Returns the function that stops it. */
  readonly keepExtending: () => () => void;
  readonly commit: () => Promise<void>;
  readonly endAfterThrow: (error: unknown) => Promise<void>;
}

/**
 * Runs `work` under a lease: extends the lease meanwhile, commits when `work` returns, and ends the lease when it throws.
 * For an async generator the lease lasts until the generator ends; leaving it early counts as a throw.
 */
export async function runInScope<T>(scope: LeaseScope, work: () => T | Promise<T>): Promise<T> {
  const stop = scope.keepExtending();
  let result: T;
  try {
    result = await work();
  } catch (error) {
    stop();
    await scope.endAfterThrow(error);
    throw error;
  }
  stop();
  if (isAsyncGenerator(result)) return inScope(scope, result) as T;
  await scope.commit();
  return result;
}

/** What `onThrow` says about this error. If it throws itself, the lease is rolled back: an open one would keep its slots. */
export function wayAfter(
  onThrow: OnThrow,
  error: unknown,
  onFailure: (thrown: unknown) => void,
): 'rollback' | 'commit' {
  if (typeof onThrow !== 'function') return onThrow;
  try {
    return onThrow(error);
  } catch (thrown) {
    onFailure(thrown);
    return 'rollback';
  }
}

/**
 * Wraps the generator with its lease. Not an async generator itself, because leaving a generator that was never started
 * runs none of its code. The lease is extended after the first step: if the generator is never iterated, the lease expires.
 */
function inScope<Y, R, N>(scope: LeaseScope, generator: AsyncGenerator<Y, R, N>): AsyncGenerator<Y, R, N> {
  let stop: (() => void) | null = null;
  const step = async (take: () => Promise<IteratorResult<Y, R>>, leaving: boolean): Promise<IteratorResult<Y, R>> => {
    stop ??= scope.keepExtending();
    let taken: IteratorResult<Y, R>;
    try {
      taken = await take();
    } catch (error) {
      stop();
      await scope.endAfterThrow(error);
      throw error;
    }
    if (taken.done !== true) return taken;
    stop();
    await (leaving ? scope.endAfterThrow(new Error('the generator was left early')) : scope.commit());
    return taken;
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

function isAsyncGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, unknown> {
  return Object.prototype.toString.call(value) === '[object AsyncGenerator]';
}
