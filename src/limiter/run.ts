import { isHeadgateError } from '../core/errors.js';
import { type Context, report } from './context.js';
import type { Lease } from './lease.js';
import { ValidationError } from '../core/errors.js';

export type OnThrow = 'rollback' | 'commit' | ((error: unknown) => 'rollback' | 'commit');

export interface RunOptions {
  /** What becomes of the lease when the function throws: `rollback` unless given. */
  readonly onThrow?: OnThrow;
}

/**
 * Runs `work` under a lease: commits when it returns, otherwise does what `onThrow` says. A failing commit never costs
 * the result, a failing rollback never replaces the error: both reach `onError`. For an async generator the lease lasts
 * until the generator ends; leaving it early counts as a throw.
 */
export async function runUnder<T>(
  context: Context,
  lease: Lease,
  work: (lease: Lease) => T | Promise<T>,
  onThrow: OnThrow = 'rollback',
): Promise<T> {
  const extending = keepExtending(context, lease);
  let result: T;
  try {
    result = await work(lease);
  } catch (error) {
    extending.abort();
    await endAfterThrow(context, lease, onThrow, error);
    throw error;
  }
  if (isAsyncGenerator(result)) return endWith(context, lease, result, onThrow, extending) as T;
  extending.abort();
  await quietly(context, 'run commit', () => endOpen(lease, () => lease.commit()));
  return result;
}

export function checkOnThrow(onThrow: unknown): void {
  if (onThrow === undefined || onThrow === 'rollback' || onThrow === 'commit' || typeof onThrow === 'function') return;
  throw new ValidationError('onThrow', `'rollback', 'commit' or a function of the error`, onThrow);
}

async function* endWith(
  context: Context,
  lease: Lease,
  generator: AsyncGenerator<unknown, unknown, unknown>,
  onThrow: OnThrow,
  extending: AbortController,
): AsyncGenerator<unknown, unknown, unknown> {
  let finished = false;
  try {
    const returned = yield* generator;
    finished = true;
    await quietly(context, 'run commit', () => endOpen(lease, () => lease.commit()));
    return returned;
  } catch (error) {
    finished = true;
    await endAfterThrow(context, lease, onThrow, error);
    throw error;
  } finally {
    extending.abort();
    if (!finished) await endAfterThrow(context, lease, onThrow, new Error('the generator was left early'));
  }
}

async function endAfterThrow(context: Context, lease: Lease, onThrow: OnThrow, error: unknown): Promise<void> {
  await quietly(context, 'run rollback', async () => {
    const way = typeof onThrow === 'function' ? onThrow(error) : onThrow;
    await endOpen(lease, () => (way === 'commit' ? lease.commit() : lease.rollbackUnsettled()));
  });
}

/** The function may have ended its lease itself. */
async function endOpen(lease: Lease, end: () => Promise<void>): Promise<void> {
  if (lease.state === 'open' || lease.state === 'expired') await end();
}

async function quietly(context: Context, where: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    report(context.options, error, where);
  }
}

/** Extends at a third of the lease's life, in the background, until aborted. */
function keepExtending(context: Context, lease: Lease): AbortController {
  const ended = new AbortController();
  const { expiresAt } = lease;
  if (expiresAt !== null) void extendEvery(Math.ceil((expiresAt.getTime() - context.clock.now()) / 3));
  return ended;

  async function extendEvery(everyMs: number): Promise<void> {
    while (lease.expiresAt !== null && lease.state !== 'committed' && lease.state !== 'rolled-back') {
      try {
        await context.clock.sleep(everyMs, ended.signal, { background: true });
        await lease.extend();
      } catch (error) {
        if (ended.signal.aborted) return;
        report(context.options, error, 'run extend');
        // Lost: `lease.signal` has told whoever listens.
        if (isHeadgateError(error, 'lease.closed')) return;
      }
    }
  }
}

function isAsyncGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, unknown> {
  return Object.prototype.toString.call(value) === '[object AsyncGenerator]';
}
