import { formatValue } from './format.js';

/** One line of a comparison: a field that was added, removed, changed, or that stayed. */
export interface DiffLine {
  readonly field: string;
  readonly kind: 'added' | 'removed' | 'changed' | 'same';
  readonly before: string;
  readonly after: string;
}

/** Fields that differ after every change. */
const BOOKKEEPING: ReadonlySet<string> = new Set(['version', 'createdAtMs']);

/** Compares two values of an audit record field by field. Lists are compared item by item. */
export function diffValues(before: unknown, after: unknown): DiffLine[] {
  const [was, is] = [flatten(before), flatten(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((field) => !BOOKKEEPING.has(field))
    .map((field) => {
      const [one, other] = [was.get(field), is.get(field)];
      const kind = one === undefined ? 'added' : other === undefined ? 'removed' : one === other ? 'same' : 'changed';
      return { field, kind, before: one ?? '', after: other ?? '' };
    });
}

const MILLI = /Milli$/;

/**
 * Fields by their path. The items of a list are fields that are named by their value, so that an inserted one shows alone.
 * Stored amounts are in thousandths, in fields that say so: they are shown as the API has them.
 */
function flatten(value: unknown, path = '', fields = new Map<string, string>(), unit = 1): Map<string, string> {
  if (value === null || value === undefined) return fields;
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) fields.set(`${path}[${itemName(item)}]`, formatValue(item));
  } else if (typeof value === 'object') {
    for (const [key, field] of Object.entries(value)) {
      const name = key.replace(MILLI, '');
      flatten(field, path === '' ? name : `${path}.${name}`, fields, name === key ? unit : 1_000);
    }
  } else {
    fields.set(path === '' ? 'value' : path, unit === 1 ? formatValue(value) : String(Number(value) / unit));
  }
  return fields;
}

/** The name of a limit in its text form; another item is named by its text. */
function itemName(item: unknown): string {
  const text = formatValue(item);
  return typeof item === 'string' && item.includes(':') ? item.slice(0, item.indexOf(':')) : text;
}
