import { MAX_LEVELS } from '../json-levels.js';
import { joinPath, type Problems } from './problems.js';

/** Whether a value is a plain object, as `{}`, `JSON.parse` and `Object.create(null)` create it. */
export function plainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** The fields of an object. Reports unknown names and leaves out fields that are undefined. */
export function readFields(
  problems: Problems,
  path: string,
  value: unknown,
  known: readonly string[],
): ReadonlyMap<string, unknown> {
  const fields = new Map<string, unknown>();
  for (const [name, field] of entriesOf(problems, path, value)) {
    if (known.includes(name)) fields.set(name, field);
    else problems.add(joinPath(path, name), describeKnown(name, known), name, 'key');
  }
  return fields;
}

/** An object whose field names the user chooses. null counts as empty, because YAML reads a key without entries as null. */
export function readMap<T>(
  problems: Problems,
  path: string,
  value: unknown,
  checkName: (name: unknown) => void,
  read: (problems: Problems, path: string, value: unknown) => T,
): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  if (value === undefined || value === null) return map;
  for (const [name, item] of entriesOf(problems, path, value)) {
    const place = joinPath(path, name);
    problems.try(place, name, () => checkName(name), 'key');
    map.set(name, read(problems, place, item));
  }
  return map;
}

function entriesOf(problems: Problems, path: string, value: unknown): readonly (readonly [string, unknown])[] {
  if (plainObject(value)) return Object.entries(value).filter(([, item]) => item !== undefined);
  problems.add(path, 'an object', value);
  return [];
}

/** A copy of the data. Reports values that JSON cannot represent. */
export function readJsonData(problems: Problems, path: string, value: unknown, levels = MAX_LEVELS): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  // JSON has no -0: the value read back from a store would differ from the one in the file.
  if (typeof value === 'number' && Number.isFinite(value)) return value + 0;
  if (levels === 0) {
    problems.add(path, `at most ${MAX_LEVELS} levels deep`, value);
    return null;
  }
  if (Array.isArray(value)) {
    return (value as readonly unknown[]).map((item, at) =>
      readJsonData(problems, joinPath(path, at), item, levels - 1),
    );
  }
  if (plainObject(value)) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return Object.fromEntries(
      entries.map(([name, item]) => [name, readJsonData(problems, joinPath(path, name), item, levels - 1)]),
    );
  }
  problems.add(path, 'plain data that JSON can hold', value);
  return null;
}

/** A name with a larger edit distance is not suggested. */
const MAX_TYPOS = 2;

function describeKnown(name: string, known: readonly string[]): string {
  const near = known.filter((word) => distance(name.toLowerCase(), word.toLowerCase()) <= MAX_TYPOS);
  const advice = near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`;
  return `one of the fields ${known.join(', ')}${advice}`;
}

/** How many letters must be added, removed or replaced to turn one word into the other. */
function distance(a: string, b: string): number {
  // A key may be a megabyte long: skips the computation, because no known word is similar.
  if (Math.abs(a.length - b.length) > MAX_TYPOS) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] ?? 0) + (a.charAt(i) === b.charAt(j) ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
