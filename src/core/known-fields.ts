import { ValidationError } from './errors.js';

/** Refuses a field that is not in `known`: it is most likely misspelt, and ignoring it would hide the mistake. */
export function checkKnownFields(field: string, value: object, known: ReadonlySet<string>): void {
  for (const key in value) {
    if (!known.has(key)) throw unknownField(field, key, known);
  }
}

function unknownField(field: string, key: string, known: ReadonlySet<string>): ValidationError {
  const nearest = nearestName(key, known);
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
  return new ValidationError(`${field}.${key}`, `one of the fields ${[...known].join(', ')}${hint}`, key);
}

/** The known name with the smallest edit distance, if that is small, or one that begins with the same letters. */
function nearestName(name: string, known: ReadonlySet<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const lower = candidate.toLowerCase();
    const distance = wanted.startsWith(lower) || lower.startsWith(wanted) ? 1 : editDistance(wanted, lower);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** How many characters must be inserted, removed or replaced to turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
