import type { EntityRecord } from '../../../../backend.js';
import type { Pause } from '../../../../core/pause.js';
import type { Statements } from '../database/statements.js';

/** The pauses of entities. Those of buckets are in the buckets. */
export function writePause(sql: Statements, ns: string, entityId: string, pause: Pause | undefined): void {
  if (pause === undefined) sql('DELETE FROM pauses WHERE ns = ? AND entity = ?').run(ns, entityId);
  else {
    const { endMs, reason } = pause;
    sql('INSERT OR REPLACE INTO pauses (ns, entity, until, reason) VALUES (?, ?, ?, ?)').run(
      ns,
      entityId,
      endMs,
      JSON.stringify(reason),
    );
  }
}

/** The records with their pauses. */
export function withPauses(sql: Statements, ns: string, entities: readonly EntityRecord[]): readonly EntityRecord[] {
  if (entities.length === 0 || !hasPauses(sql)) return entities;
  return entities.map((entity) => {
    const row = sql('SELECT until, reason FROM pauses WHERE ns = ? AND entity = ?').get(ns, entity.id);
    if (row === undefined) return entity;
    return { ...entity, pause: { endMs: Number(row[0]), reason: JSON.parse(String(row[1])) as string } };
  });
}

/** A file of an older format does not have the table until the first write, and most files have no pause. */
function hasPauses(sql: Statements): boolean {
  if (sql(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'pauses'`).get() === undefined) return false;
  return sql('SELECT 1 FROM pauses LIMIT 1').get() !== undefined;
}
