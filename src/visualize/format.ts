/** `1234567` as `1,234,567`; at most two decimals. */
export function formatCount(value: number): string {
  const [whole = '', decimals] = String(Math.round(Math.abs(value) * 100) / 100).split('.');
  const sign = value < 0 ? '-' : '';
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
  return `${sign}${grouped}${decimals === undefined ? '' : `.${decimals}`}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/** The two largest units, rounded up, so that the printed wait is never too short. `90500` is `1 min 31 s`. */
export function formatDuration(durationMs: number): string {
  const wholeMs = Math.ceil(durationMs);
  const first = UNITS.findIndex(([, unitMs]) => wholeMs >= unitMs);
  const [unit, unitMs] = UNITS[first] ?? ['ms', 1];
  if (unit === 'ms') return `${wholeMs} ms`;
  const [smaller, smallerMs] = UNITS[first + 1] ?? ['ms', 1];
  const stepMs = unit === 's' ? 100 : smallerMs;
  const roundedMs = Math.ceil(wholeMs / stepMs) * stepMs;
  // Rounding may reach the next unit: 59 min 60 s is 1 h.
  if (roundedMs > wholeMs) return formatDuration(roundedMs);
  if (unit === 's') return `${wholeMs / 1_000} s`;
  const restMs = wholeMs % unitMs;
  const count = `${(wholeMs - restMs) / unitMs} ${unit}`;
  return restMs === 0 ? count : `${count} ${restMs / smallerMs} ${smaller}`;
}

/** `2027-01-15 10:00:05Z`: to the second, in UTC. */
export function formatInstant(instant: Date): string {
  return `${instant.toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** Escapes the control characters of a text, which could move the cursor of the terminal or change its colours. */
export function printable(text: string): string {
  return text.replaceAll(
    // oxlint-disable-next-line no-control-regex -- control characters are what it escapes
    /[\u0000-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
