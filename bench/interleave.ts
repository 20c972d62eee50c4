export interface Round {
  readonly ours: number;
  readonly theirs: number;
}

/**
 * Both contenders run in every round, and they alternate in going first. The first round only warms up. A ratio is
 * computed per round, so that a temporary slowdown of the machine affects both.
 */
export async function interleave(
  rounds: number,
  ours: () => Promise<number>,
  theirs: () => Promise<number>,
): Promise<readonly Round[]> {
  await ours();
  await theirs();
  const measured: Round[] = [];
  for (let round = 0; round < rounds; round++) {
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

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
