/**
 * What `--json` prints, one type per command, beside the command: a promise to programs, repeated as a table in
 * docs/reference/cli-json.md. Limits are text as `Limit.parse` reads it, instants are ISO 8601 in UTC, durations end in `Ms`.
 * A field that can be left out says so; every other one is always there.
 */
export type LimitText = string;
export type Instant = string;
export type Counts = Readonly<Record<string, number>>;

export interface ListShape<T> {
  readonly items: readonly T[];
  /** The value for `--after`; null: this is the last page. */
  readonly next: string | null;
}

/** A pause that runs. */
export interface PauseShape {
  /** null: until it is resumed. */
  readonly until: Instant | null;
  readonly reason: string;
}

/** `--json` of `pause` */
export interface PausedByShape extends PauseShape {
  readonly entityId: string;
  /** null: every resource. */
  readonly resource: string | null;
}

/** `--json` of `entity delete`, `resource delete`, `system delete` */
export interface DeletedShape {
  /** false: there was nothing to delete. */
  readonly deleted: boolean;
}
