/** One bar of a chart. */
export interface Bar {
  readonly label: string;
  readonly value: number;
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** Horizontal bars with their labels and values, the longest `width` characters; a value above 0 always shows. */
export function drawBars(bars: readonly Bar[], width = 40): string {
  const most = Math.max(0, ...bars.map(({ value }) => value));
  const labelWidth = Math.max(0, ...bars.map(({ label }) => label.length));
  return bars
    .map(({ label, value }) => `${label.padEnd(labelWidth)} ${drawBar(value, most, width)} ${String(value)}`)
    .join('\n');
}

function drawBar(value: number, most: number, width: number): string {
  if (value <= 0 || most <= 0) return '';
  const eighths = Math.max(1, Math.round((value / most) * width * EIGHTHS.length));
  return '█'.repeat(Math.floor(eighths / EIGHTHS.length)) + (EIGHTHS[eighths % EIGHTHS.length] ?? '');
}

/** Columns as wide as their widest cell; numbers to the right. */
export function drawTable(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row, line) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return typeof rows[line - 1]?.[column] === 'number' ? cell.padStart(width) : cell.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
