import type { LevelRecord, Page, PageRequest } from '../../../../backend.js';
import type { ConfigLevel, OnUnavailable, StoredConfig } from '../../../../core/config/config.js';
import { buildLevelKey, parseLevelKey } from '../../../../core/manifest/managed.js';
import { decodeLimits, encodeLimits } from './codec.js';
import type { SqlValue } from '../database/driver.js';
import { pageOfRows, type Statements } from '../database/statements.js';

export function selectConfig(sql: Statements, ns: string, level: ConfigLevel): StoredConfig | undefined {
  const row = sql(
    `SELECT ${CONFIG_COLUMNS} FROM configs WHERE ns = ? AND kind = ? AND entity = ? AND resource = ?`,
  ).get(ns, ...columnsOf(level));
  return row === undefined ? undefined : decodeConfig(row);
}

export function writeConfig(sql: Statements, ns: string, level: ConfigLevel, config: StoredConfig): void {
  const { limits, onUnavailable, v } = config;
  sql(
    `INSERT OR REPLACE INTO configs (ns, kind, entity, resource, ${CONFIG_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(ns, ...columnsOf(level), encodeLimits(limits), onUnavailable, v);
}

/** Levels with settings. */
export function selectConfigs(sql: Statements, ns: string, { limit, after }: PageRequest): Page<LevelRecord> {
  const seen = after === null ? undefined : parseLevelKey(after);
  const rows = sql(
    `SELECT ${CONFIG_COLUMNS}, kind, entity, resource FROM configs
     WHERE ns = ? AND (limits IS NOT NULL OR on_unavailable IS NOT NULL) AND (kind, entity, resource) > (?, ?, ?)
     ORDER BY kind, entity, resource LIMIT ?`,
  ).all(ns, ...(seen === undefined ? ['', '', ''] : columnsOf(seen)), limit + 1);
  return pageOfRows(rows, limit, decodeLevel, ({ level }) => buildLevelKey(level));
}

/** Entities with their own limits for a resource, in the order of their ids. */
export function selectEntitiesWithConfig(
  sql: Statements,
  ns: string,
  resource: string,
  { limit, after }: PageRequest,
): Page<string> {
  const rows = sql(
    `SELECT entity FROM configs WHERE ns = ? AND resource = ? AND kind = 'entity' AND limits IS NOT NULL
     AND entity > ? ORDER BY entity LIMIT ?`,
  ).all(ns, resource, after ?? '', limit + 1);
  return pageOfRows(
    rows,
    limit,
    (row) => String(row[0]),
    (entityId) => entityId,
  );
}

const CONFIG_COLUMNS = 'limits, on_unavailable, v';

function decodeConfig(row: readonly SqlValue[]): StoredConfig {
  const [limits, onUnavailable, v] = row as [string | null, OnUnavailable | null, number];
  return { limits: decodeLimits(limits), onUnavailable, v };
}

function decodeLevel(row: readonly SqlValue[]): LevelRecord {
  const names = row.slice(3).filter((name) => name !== '');
  const level = parseLevelKey(names.join('#'));
  if (level === undefined) throw new TypeError(`A config row without a level: ${names.join(' ')}`);
  return { level, config: decodeConfig(row) };
}

/** Columns that a level does not have are empty; no name is. */
function columnsOf(level: ConfigLevel): [kind: string, entity: string, resource: string] {
  const entity = 'entityId' in level ? level.entityId : '';
  return [level.kind, entity, 'resource' in level ? level.resource : ''];
}
