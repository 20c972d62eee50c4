import { formatCount, printable } from './format.js';

/** Numbers stand to the right. `paint` is applied once the width is known: escape codes have none. */
export type Cell = string | number | PaintedCell;

export interface PaintedCell {
  readonly value: string | number;
  readonly paint: (text: string) => string;
}

/** Columns as wide as their widest cell; those that hold numbers are aligned to the right, with their title. */
export function drawTable(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const isNumeric = header.map((_, column) => rows.some((row) => typeof valueOf(row[column]) === 'number'));
  // Not by spreading: a list may have more rows than a call may have arguments.
  const widths = header.map((title, column) =>
    rows.reduce((most, row) => Math.max(most, width(textOf(row[column]))), width(title)),
  );
  const draw = (row: readonly (Cell | undefined)[]): string =>
    header
      .map((_, column) => drawCell(row[column], widths[column] ?? 0, isNumeric[column] === true))
      .join('  ')
      .trimEnd();
  return [...(header.some((title) => title !== '') ? [header] : []), ...rows].map(draw).join('\n');
}

/** Names of things and their values, one to a line. */
export function drawFields(fields: readonly (readonly [name: string, value: Cell])[]): string {
  const nameWidth = Math.max(0, ...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => `${name.padEnd(nameWidth)}  ${drawCell(value, 0, false)}`.trimEnd()).join('\n');
}

function drawCell(cell: Cell | undefined, columnWidth: number, toTheRight: boolean): string {
  const text = textOf(cell);
  const painted = typeof cell === 'object' ? cell.paint(text) : text;
  const space = ' '.repeat(Math.max(0, columnWidth - width(text)));
  return toTheRight ? space + painted : painted + space;
}

function valueOf(cell: Cell | undefined): string | number | undefined {
  return typeof cell === 'object' ? cell.value : cell;
}

function textOf(cell: Cell | undefined): string {
  const value = valueOf(cell);
  return typeof value === 'number' ? formatCount(value) : printable(value ?? '');
}

/** In code points: a name may hold what UTF-16 needs two units for. */
function width(text: string): number {
  return Array.from(text).length;
}
