/**
 * What `--json` prints, one type per command: a promise to programs, repeated as a table in docs/guide/cli.md. Limits are
 * text as `Limit.parse` reads it, instants are ISO 8601 in UTC, durations end in `Ms`.
 */
export interface CheckShape {
  readonly ok: boolean;
  readonly store: string;
  readonly latencyMs: number;
  readonly namespace: string;
  readonly namespaceId: string;
}
