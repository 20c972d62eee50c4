export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: number;
  /** The target: the smallest ratio, or the largest where less is better. */
  readonly goal?: number;
  readonly goalIs?: 'least' | 'most';
}

export function table(rows: readonly Row[]): string {
  const lines = [
    ['', 'unit', 'headgate', 'peer', 'ratio', 'goal'],
    ...rows.map((row) => [
      row.name,
      row.unit,
      figure(row.ours),
      figure(row.theirs),
      `${row.ratio.toFixed(2)}x`,
      goalOf(row),
    ]),
  ];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) =>
      line
        .map((cell, column) => align(cell, widths[column] ?? 0, column))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function isMissed({ ratio, goal, goalIs = 'least' }: Row): boolean {
  if (goal === undefined) return false;
  return goalIs === 'least' ? !(ratio >= goal) : !(ratio <= goal);
}

function goalOf(row: Row): string {
  const { goal, goalIs = 'least' } = row;
  if (goal === undefined) return '-';
  return `${goalIs === 'least' ? '>=' : '<='} ${goal}x ${isMissed(row) ? 'MISSED' : 'met'}`;
}

/** Whole numbers; small numbers with three digits. */
function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Aligns words to the left and figures to the right. */
function align(cell: string, width: number, column: number): string {
  return column < 2 || column === 5 ? cell.padEnd(width) : cell.padStart(width);
}
