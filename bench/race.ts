import { type Comparison, compare, INVERSE } from './interleave.js';
import { sized } from './settings.js';

export type Contender = (key: string) => Promise<void>;

const OPERATIONS = 100_000;

/** Nanoseconds per operation, one after the other, with each key in turn. The ratio is theirs / ours. */
export async function race(
  keys: readonly string[],
  ours: Contender,
  theirs: Contender,
  operations: number = OPERATIONS,
): Promise<Comparison> {
  const measure = (contender: Contender): Promise<number> => nsPerOperation(keys, contender, sized(operations));
  return compare(
    () => measure(ours),
    () => measure(theirs),
    INVERSE,
  );
}

/** Starts with a collected heap, so that neither contender pays for the garbage of the other. */
async function nsPerOperation(keys: readonly string[], contender: Contender, operations: number): Promise<number> {
  globalThis.gc?.();
  const startNs = process.hrtime.bigint();
  for (let operation = 0; operation < operations; operation++) await contender(keys[operation % keys.length] ?? '');
  return Number(process.hrtime.bigint() - startNs) / operations;
}
