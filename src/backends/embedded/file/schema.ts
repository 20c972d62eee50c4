import { SchemaMismatch, ValidationError } from '../../../core/errors.js';
import { isNotADatabase, type SqliteDatabase } from './driver.js';

/** 'Head', so that a file of another program is told from one of ours. */
const APPLICATION_ID = 0x48656164;

/**
 * What makes each format out of the one before: format 1 out of an empty file. Rows are found by their keys alone, so that
 * the keys are the tables. Steps only add: processes that have an older format open go on working.
 */
const STEPS: readonly string[] = [
  `
CREATE TABLE namespaces (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL,
  sequence INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX namespaces_active ON namespaces (name) WHERE status = 'active';

CREATE TABLE buckets (
  ns TEXT, entity TEXT, resource TEXT, plain TEXT NOT NULL, state TEXT NOT NULL,
  PRIMARY KEY (ns, entity, resource)
) WITHOUT ROWID;
CREATE INDEX buckets_of_resource ON buckets (ns, plain, entity, resource);

CREATE TABLE configs (
  ns TEXT, kind TEXT, entity TEXT, resource TEXT, limits TEXT, on_unavailable TEXT, v INTEGER NOT NULL,
  PRIMARY KEY (ns, kind, entity, resource)
) WITHOUT ROWID;
CREATE INDEX configs_of_resource ON configs (ns, resource, entity) WHERE kind = 'entity' AND limits IS NOT NULL;

CREATE TABLE entities (
  ns TEXT, id TEXT, name TEXT, parent TEXT, cascade INTEGER NOT NULL, metadata TEXT NOT NULL,
  created_at INTEGER NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (ns, id)
) WITHOUT ROWID;
CREATE INDEX entities_of_parent ON entities (ns, parent, id);

CREATE TABLE audit (
  ns TEXT, id TEXT, subject TEXT NOT NULL, at INTEGER NOT NULL, principal TEXT, action TEXT NOT NULL,
  before TEXT NOT NULL, after TEXT NOT NULL,
  PRIMARY KEY (ns, id)
) WITHOUT ROWID;
CREATE INDEX audit_of_subject ON audit (ns, subject, id);

CREATE TABLE usage (
  ns TEXT, entity TEXT, resource TEXT, win TEXT, start INTEGER, counts TEXT NOT NULL,
  PRIMARY KEY (ns, entity, resource, win, start)
) WITHOUT ROWID;
CREATE INDEX usage_of_resource ON usage (ns, resource, win, start, entity);
`,
  `
CREATE TABLE managed (ns TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (ns, key)) WITHOUT ROWID;
`,
  `
CREATE TABLE clock (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, host INTEGER NOT NULL, boot TEXT NOT NULL);
`,
];

const SCHEMA_VERSION = STEPS.length;

/** The tables that hold what namespaces own; the registry's own audit stands under the namespace "_". */
export const OWNED_TABLES = ['buckets', 'configs', 'entities', 'audit', 'usage', 'managed'] as const;

/** What a file turned out to be; `older`: ours, of a format that lacks some tables. */
export type FileState = 'ours' | 'older' | 'empty';

/** Refuses files that are not ours, and those of a format that this code does not know. */
export function inspectSchema(database: SqliteDatabase, path: string): FileState {
  let applicationId: number;
  try {
    applicationId = pragma(database, 'application_id');
  } catch (error) {
    if (isNotADatabase(error)) throw notOurs(path);
    throw error;
  }
  if (applicationId === 0 && database.prepare('SELECT count(*) FROM sqlite_schema').get()?.[0] === 0) return 'empty';
  if (applicationId !== APPLICATION_ID) throw notOurs(path);
  const version = pragma(database, 'user_version');
  if (version > SCHEMA_VERSION) {
    throw new SchemaMismatch(
      `${path} was written by a newer Headgate (format ${version}, this one knows ${SCHEMA_VERSION})`,
      'npm install headgate@latest',
    );
  }
  return version < SCHEMA_VERSION ? 'older' : 'ours';
}

/** Makes an empty or older file one of today's. Inside a transaction: other processes see all of it or nothing. */
export function completeSchema(database: SqliteDatabase): void {
  for (const step of STEPS.slice(pragma(database, 'user_version'))) database.exec(step);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
}

function pragma(database: SqliteDatabase, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[0] ?? 0);
}

function notOurs(path: string): ValidationError {
  return new ValidationError('store', 'the path of a Headgate file, or of none yet', path);
}
