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

/**
 * Both run in every round, each goes first in turn, and each ratio is of one round: what slows the machine down for a
 * while slows both.
 */
export async function race(
  keys: readonly string[],
  ours: Contender,
  theirs: Contender,
  operations: number = OPERATIONS,
): Promise<RaceResult> {
  const measure = (contender: Contender): Promise<number> => nsPerOperation(keys, contender, operations);
  await measure(ours);
  await measure(theirs);
  const rounds: { readonly ours: number; readonly theirs: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    if (round % 2 === 0) {
      const first = await measure(ours);
      rounds.push({ ours: first, theirs: await measure(theirs) });
    } else {
      const first = await measure(theirs);
      rounds.push({ ours: await measure(ours), theirs: first });
    }
  }
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

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
