/** What one pass over a part of the table came to. */
export interface Tally {
  /** Old records that were looked at. */
  readonly seen: number;
  readonly written: number;
  /** Units that wait for the next pass, mostly because somebody wrote while they were to be moved. */
  readonly changed: number;
  /** Buckets from which rather too much was taken than too little. */
  readonly strict: number;
  /** Old records that have no counterpart. */
  readonly left: number;
  readonly problems: readonly Problem[];
}

export interface Problem {
  readonly record: string;
  readonly reason: string;
}

export const NOTHING: Tally = { seen: 0, written: 0, changed: 0, strict: 0, left: 0, problems: [] };

const MAX_PROBLEMS = 20;

export function addTally(a: Tally, b: Tally): Tally {
  return {
    seen: a.seen + b.seen,
    written: a.written + b.written,
    changed: a.changed + b.changed,
    strict: a.strict + b.strict,
    left: a.left + b.left,
    problems: [...a.problems, ...b.problems].slice(0, MAX_PROBLEMS),
  };
}
