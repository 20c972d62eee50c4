/** The result of one pass over a part of the table. */
export interface Tally {
  /** Old records that were read. */
  readonly seen: number;
  readonly written: number;
  /** Conversions left for the next pass, mostly because a record changed during the write. */
  readonly changed: number;
  /** Buckets that may have lost too many tokens, never too few. */
  readonly strict: number;
  /** Old records without a counterpart. */
  readonly left: number;
  readonly problems: readonly MigrationProblem[];
}

export interface MigrationProblem {
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
