import { formatCount, printable } from './format.js';

/** Numbers are aligned to the right. `paint` is applied after the width is known, because escape codes have no width. */
export type Cell = string | number | PaintedCell;

export interface PaintedCell {
  readonly value: string | number;
  readonly paint: (text: string) => string;
}

const GAP = '  ';
/** No column of text is made narrower than this, because most words would be broken. */
const LEAST_WIDTH = 10;

/**
 * Columns as wide as their widest cell; columns of numbers are aligned to the right, with their title. If the
 * table is wider than `screenWidth`, the widest columns of text are narrowed and their cells are wrapped.
 */
export function drawTable(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  screenWidth = Number.POSITIVE_INFINITY,
): string {
  const isNumeric = header.map((_, column) => rows.some((row) => typeof valueOf(row[column]) === 'number'));
  // A spread would fail: a list may have more rows than a call may have arguments.
  const wanted = header.map((title, column) =>
    rows.reduce((most, row) => Math.max(most, width(textOf(row[column]))), width(title)),
  );
  const widths = fitWidths(wanted, isNumeric, screenWidth - GAP.length * (header.length - 1));
  const draw = (row: readonly (Cell | undefined)[]): string[] => {
    const cells = header.map((_, column) => linesOf(row[column], widths[column] ?? 0));
    const height = cells.reduce((most, lines) => Math.max(most, lines.length), 1);
    return Array.from({ length: height }, (_line, at) =>
      cells
        .map((lines, column) => drawCell(lines[at] ?? '', widths[column] ?? 0, isNumeric[column] === true))
        .join(GAP)
        .trimEnd(),
    );
  };
  return [...(header.some((title) => title !== '') ? [header] : []), ...rows].flatMap(draw).join('\n');
}

/** Narrows the widest column of text first, so that narrow columns keep their width. */
function fitWidths(wanted: readonly number[], isNumeric: readonly boolean[], most: number): readonly number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, one) => sum + one, 0) - most;
  while (excess > 0) {
    let widest = -1;
    for (const [column, one] of widths.entries()) {
      if (isNumeric[column] !== true && one > LEAST_WIDTH && one > (widths[widest] ?? 0)) widest = column;
    }
    if (widest < 0) return widths;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

/** Wraps a cell, between words if possible. Each line is painted. */
function linesOf(cell: Cell | undefined, columnWidth: number): readonly Cell[] {
  const text = textOf(cell);
  if (cell === undefined || width(text) <= columnWidth) return [cell ?? ''];
  const lines = wrap(text, columnWidth);
  return typeof cell === 'object' ? lines.map((value) => ({ value, paint: cell.paint })) : lines;
}

function wrap(text: string, lineWidth: number): string[] {
  const lines: string[] = [];
  let rest = Array.from(text);
  while (rest.length > lineWidth) {
    const space = rest.slice(0, lineWidth + 1).lastIndexOf(' ');
    const end = space > 0 ? space : lineWidth;
    lines.push(rest.slice(0, end).join(''));
    rest = rest.slice(space > 0 ? end + 1 : end);
  }
  return [...lines, rest.join('')];
}

/** Names and their values, one per line. */
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

/** In code points, because a name may have characters of two UTF-16 units. */
function width(text: string): number {
  return Array.from(text).length;
}
