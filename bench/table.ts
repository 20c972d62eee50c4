export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: number;
  /** The least ratio that is aimed at. */
  readonly goal?: number;
}

export function table(rows: readonly Row[]): string {
  const lines = [
    ['', 'unit', 'headgate', 'peer', 'ratio', 'goal'],
    ...rows.map(({ name, unit, ours, theirs, ratio, goal }) => [
      name,
      unit,
      ours.toFixed(0),
      theirs.toFixed(0),
      `${ratio.toFixed(2)}x`,
      goal === undefined ? '-' : `>= ${goal.toFixed(1)}x ${ratio >= goal ? 'met' : 'MISSED'}`,
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

/** Words to the left, figures to the right. */
function align(cell: string, width: number, column: number): string {
  return column < 2 || column === 5 ? cell.padEnd(width) : cell.padStart(width);
}
