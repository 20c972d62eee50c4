/** One bar of a chart. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  /** The text after the bar, by default the value. */
  readonly shown?: string;
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** Horizontal bars with their labels and values, the longest `width` characters; a value above 0 is always visible. */
export function drawBars(bars: readonly Bar[], width = 40): string {
  const most = bars.reduce((largest, { value }) => Math.max(largest, value), 0);
  const labelWidth = bars.reduce((longest, { label }) => Math.max(longest, label.length), 0);
  return bars
    .map(({ label, value, shown = String(value) }) => {
      const bar = drawBar(value, most, width);
      return `${label.padEnd(labelWidth)} ${bar} ${shown}`;
    })
    .join('\n');
}

function drawBar(value: number, most: number, width: number): string {
  if (value <= 0 || most <= 0) return '';
  const eighths = Math.max(1, Math.round((value / most) * width * EIGHTHS.length));
  return '█'.repeat(Math.floor(eighths / EIGHTHS.length)) + (EIGHTHS[eighths % EIGHTHS.length] ?? '');
}
