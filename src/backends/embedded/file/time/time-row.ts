import type { TimeMark } from './file-clock.js';
import type { Statements } from '../database/statements.js';

export function selectTimeMark(sql: Statements): TimeMark | null {
  const row = sql('SELECT at, host, boot FROM clock').get();
  if (row === undefined) return null;
  const [timeMs, hostMs, bootId] = row as [number, number, string];
  return { timeMs, hostMs, bootId };
}

/** Keeps the largest time. */
export function writeTimeMark(sql: Statements, { timeMs, hostMs, bootId }: TimeMark): void {
  sql(
    `INSERT INTO clock (id, at, host, boot) VALUES (1, ?, ?, ?)
     ON CONFLICT DO UPDATE SET at = excluded.at, host = excluded.host, boot = excluded.boot WHERE excluded.at >= at`,
  ).run(timeMs, hostMs, bootId);
}
