import type { LevelAsk } from '../../backend.js';
import type { AskedAmount } from '../../core/bucket/decide.js';
import { ValidationError } from '../../core/errors.js';
import type { Limit } from '../../core/limit.js';

/** Refuses a class that no limit of the chain names: a typing error must not become the highest priority. */
export function refuseUnknownPriority(
  priority: string,
  levels: readonly { readonly limits: readonly Limit[] }[],
): void {
  const known = new Set(levels.flatMap(({ limits }) => limits.flatMap(({ reserve }) => Object.keys(reserve ?? {}))));
  if (known.has(priority)) return;
  const expected = known.size === 0 ? 'left out, because no limit names a class' : 'a class that a limit names';
  const names = known.size === 0 ? '' : ` (${[...known].toSorted().join(', ')})`;
  throw new ValidationError('priority', `${expected}${names}`, priority);
}

/** Adds to each ask the share of its limit that must stay. The class applies at each level whose limits name it. */
export function withReserves(levels: readonly LevelAsk[], priority: string): readonly LevelAsk[] {
  return levels.map((level) => ({ ...level, asks: level.asks.map((ask) => withReserve(level, ask, priority)) }));
}

function withReserve({ limits }: LevelAsk, ask: AskedAmount, priority: string): AskedAmount {
  const reserve = limits.find(({ name }) => name === ask.name)?.reserve ?? {};
  // A class of no reserve is served like an ask without a class.
  if (!Object.hasOwn(reserve, priority) || reserve[priority] === 0) return ask;
  return { ...ask, reserve: reserve[priority] ?? 0 };
}
