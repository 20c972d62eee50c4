import { PAIRS } from './settings.js';
import { type Spread, spreadOf } from './spread.js';

export interface Round {
  readonly ours: number;
  readonly theirs: number;
}

/** Two contenders that were measured in pairs. */
export interface Comparison {
  /** The median over the rounds. */
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: Spread;
}

const oursToTheirs = ({ ours, theirs }: Round): number => ours / theirs;
export const theirsToOurs = ({ ours, theirs }: Round): number => theirs / ours;

/** Compares in pairs. The ratio of each pair is computed first, so that a slow machine affects both of its figures. */
export async function compare(
  ours: () => Promise<number>,
  theirs: () => Promise<number>,
  ratioOf: (round: Round) => number = oursToTheirs,
): Promise<Comparison> {
  return comparisonOf(await interleave(ours, theirs), ratioOf);
}

export function comparisonOf(rounds: readonly Round[], ratioOf: (round: Round) => number = oursToTheirs): Comparison {
  return {
    ours: spreadOf(rounds.map((round) => round.ours)).median,
    theirs: spreadOf(rounds.map((round) => round.theirs)).median,
    ratio: spreadOf(rounds.map(ratioOf)),
  };
}

/** Both contenders run in every round, and they alternate in going first. The first round only warms up. */
export async function interleave(
  ours: () => Promise<number>,
  theirs: () => Promise<number>,
): Promise<readonly Round[]> {
  await ours();
  await theirs();
  const measured: Round[] = [];
  for (let round = 0; round < PAIRS; round++) {
    if (round % 2 === 0) {
      const first = await ours();
      measured.push({ ours: first, theirs: await theirs() });
    } else {
      const first = await theirs();
      measured.push({ ours: await ours(), theirs: first });
    }
  }
  return measured;
}
