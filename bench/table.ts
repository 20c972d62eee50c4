import { availableParallelism, loadavg } from 'node:os';
import { type Comparison, ratioOf } from './interleave.js';
import { LEAST_PAIRS, printRatio, spreadOf } from './spread.js';

export interface Row extends Comparison {
  readonly name: string;
  readonly unit: string;
  /** The target: the smallest ratio, or the largest where less is better. */
  readonly goal?: number;
  readonly goalIs?: 'least' | 'most';
}

/** The peer of the row is the most that the figure may be. */
export function within(name: string, unit: string, measured: readonly number[], most: number): Row {
  const ours = spreadOf(measured).median;
  const ratio = spreadOf(measured.map((value) => value / most));
  return { name, unit, ours, theirs: most, ratio, goal: 1, goalIs: 'most' };
}

/** The pairs of all runs together. A row has the same place in every run, while its name may contain a figure. */
export function mergeRows(runs: readonly (readonly Row[])[]): readonly Row[] {
  return (runs[0] ?? []).map((row, at) => {
    const all = runs.flatMap((rows) => rows.slice(at, at + 1));
    return {
      ...row,
      ours: spreadOf(all.map(({ ours }) => ours)).median,
      theirs: spreadOf(all.map(({ theirs }) => theirs)).median,
      ratio: spreadOf(all.flatMap(({ ratio }) => ratio.values)),
    };
  });
}

/** A goal that is missed makes the process fail. */
export function printTable(title: string, rows: readonly Row[]): void {
  if (rows.length === 0) return;
  const loads = loadavg().map((load) => load.toFixed(1));
  console.log(`\n${title}\n${table(rows)}`);
  console.log(`Load average ${loads.join(' ')} on ${availableParallelism()} processors\n`);
  if (rows.some((row) => verdictOf(row) === 'MISSED')) process.exitCode = 1;
}

function table(rows: readonly Row[]): string {
  return inColumns(
    [
      ['', 'unit', 'headgate', 'peer', 'ratio', 'goal'],
      ...rows.map((row) => [
        row.name,
        row.unit,
        figure(row.ours),
        figure(row.theirs),
        printRatio(row.ratio),
        goalOf(row),
      ]),
    ],
    new Set([0, 1, 5]),
  );
}

/** Aligns the columns of words to the left and those of figures to the right. */
export function inColumns(lines: readonly (readonly string[])[], words: ReadonlySet<number>): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const align = (cell: string, column: number): string =>
    words.has(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((line) => line.map(align).join('  ').trimEnd()).join('\n');
}

/**
 * A goal is met only if the worse quartile meets it, and so does the ratio of the two medians that are printed beside it. It
 * is missed only if the better quartile misses it. Else, or with too few pairs, it is unclear.
 */
export function verdictOf(row: Row): 'met' | 'MISSED' | 'unclear' | null {
  const { ratio, goal, goalIs = 'least' } = row;
  if (goal === undefined) return null;
  if (!(ratio.count >= LEAST_PAIRS)) return 'unclear';
  const [worse, better] = goalIs === 'least' ? [ratio.low, ratio.high] : [ratio.high, ratio.low];
  const meets = (value: number): boolean => (goalIs === 'least' ? value >= goal : value <= goal);
  if (meets(worse) && meets(ratioOf(row, row.isInverse))) return 'met';
  return meets(better) ? 'unclear' : 'MISSED';
}

function goalOf(row: Row): string {
  const { goal, goalIs = 'least' } = row;
  return goal === undefined ? '-' : `${goalIs === 'least' ? '>=' : '<='} ${goal}x ${verdictOf(row)}`;
}

/** Whole numbers; small numbers with three digits. */
export function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
