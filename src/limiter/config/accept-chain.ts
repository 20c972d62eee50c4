import type { Awaitable } from '../../backend.js';
import type { EpochMs } from '../../core/units.js';
import { type Context, endOfCall } from '../context.js';
import type { CachedConfig } from './config-cache.js';

/**
 * The result of `use` for the chain. Another process may have set limits that are not in the cache yet: if `use` throws, the
 * config is read once more.
 */
export function acceptChain<T>(
  context: Context,
  chain: readonly CachedConfig[],
  nowMs: EpochMs,
  use: (chain: readonly CachedConfig[]) => T,
): Awaitable<T> {
  try {
    return use(chain);
  } catch (error) {
    if (!chain.some(({ fetchedAtMs }) => fetchedAtMs !== nowMs)) throw error;
    return context.resolver.renewChain(chain, nowMs, endOfCall(context, nowMs)).then(use);
  }
}
