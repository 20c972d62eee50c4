import { interleave, median } from './interleave.js';

export type Contender = (key: string) => Promise<void>;

export interface RaceResult {
  /** The median of the rounds, in ns per operation. */
  readonly ours: number;
  readonly theirs: number;
  /** The median of theirs / ours over the rounds. */
  readonly ratio: number;
}

const ROUNDS = 7;
const OPERATIONS = 100_000;

/** Runs one operation after the other, with each key in turn. */
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

/** Nanoseconds per operation. Starts with a collected heap, so that neither contender pays for the garbage of the other. */
async function nsPerOperation(keys: readonly string[], contender: Contender, operations: number): Promise<number> {
  globalThis.gc?.();
  const startNs = process.hrtime.bigint();
  for (let operation = 0; operation < operations; operation++) await contender(keys[operation % keys.length] ?? '');
  return Number(process.hrtime.bigint() - startNs) / operations;
}
