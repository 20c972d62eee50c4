import { PAIRS } from './settings.js';
import { type Spread, spreadOf } from './spread.js';

/** What both contenders measured, one after the other. */
export interface Round<T = number> {
  readonly ours: T;
  readonly theirs: T;
}

/** Two contenders that were measured in pairs. */
export interface Comparison {
  /** The median over the rounds. */
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: Spread;
  /** The ratios are theirs / ours, for figures that are better when lower. Else they are ours / theirs. */
  readonly isInverse?: boolean;
}

export interface Direction {
  readonly isInverse: boolean;
}

const FORWARD: Direction = { isInverse: false };
export const INVERSE: Direction = { isInverse: true };

export function ratioOf({ ours, theirs }: Round, isInverse = false): number {
  return isInverse ? theirs / ours : ours / theirs;
}

/** Compares in pairs. The ratio of each pair is computed first, so that a slow machine affects both of its figures. */
export async function compare(
  ours: () => Promise<number>,
  theirs: () => Promise<number>,
  direction: Direction = FORWARD,
): Promise<Comparison> {
  return comparisonOf(await interleave(ours, theirs), direction);
}

export function comparisonOf(rounds: readonly Round[], { isInverse }: Direction = FORWARD): Comparison {
  return {
    ours: spreadOf(rounds.map((round) => round.ours)).median,
    theirs: spreadOf(rounds.map((round) => round.theirs)).median,
    ratio: spreadOf(rounds.map((round) => ratioOf(round, isInverse))),
    isInverse,
  };
}

/** Both contenders run in every round, and they alternate in going first. The first round only warms up. */
export async function interleave<T>(ours: () => Promise<T>, theirs: () => Promise<T>): Promise<readonly Round<T>[]> {
  await ours();
  await theirs();
  const measured: Round<T>[] = [];
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
