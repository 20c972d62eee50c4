import { interleave, median } from './interleave.js';

export type Contender = (key: string) => Promise<void>;

export interface RaceResult {
  /** Median of the rounds, in ns per operation. */
  readonly ours: number;
  readonly theirs: number;
  /** Median of the ratios of each round: theirs / ours. */
  readonly ratio: number;
}

const ROUNDS = 7;
const OPERATIONS = 100_000;

/** One operation after the other, over all keys in turn. */
export async function race(
  keys: readonly string[],
  ours: Contender,
  theirs: Contender,
  operations: number = OPERATIONS,
): Promise<RaceResult> {
  const measure = (contender: Contender): Promise<number> => nsPerOperation(keys, contender, operations);
  const rounds = await interleave(
    ROUNDS,
    () => measure(ours),
    () => measure(theirs),
  );
  return {
    ours: median(rounds.map((round) => round.ours)),
    theirs: median(rounds.map((round) => round.theirs)),
    ratio: median(rounds.map((round) => round.theirs / round.ours)),
  };
}

/** Nanoseconds per operation. Starts on a clean heap, so that nobody pays for the other's garbage. */
async function nsPerOperation(keys: readonly string[], contender: Contender, operations: number): Promise<number> {
  globalThis.gc?.();
  const startNs = process.hrtime.bigint();
  for (let operation = 0; operation < operations; operation++) await contender(keys[operation % keys.length] ?? '');
  return Number(process.hrtime.bigint() - startNs) / operations;
}
