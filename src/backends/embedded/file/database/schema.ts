import { SchemaMismatch, ValidationError } from '../../../../core/errors.js';
import { isNotADatabase, type SqliteDatabase } from './driver.js';

/** 'Head': distinguishes Headgate's files from those of other programs. */
const APPLICATION_ID = 0x48656164;

/**
 * The steps from each format to the next; the first creates format 1 in an empty file. Rows are found only by their
 * keys, so the tables are WITHOUT ROWID. Steps only add: processes that have an older format open continue to work.
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
  // Buckets may be paused, and holders may be portable. Older code would drop that, so it must not open the file.
  `
CREATE TABLE receipts (
  ns TEXT, entity TEXT, resource TEXT, id TEXT, content TEXT NOT NULL, ends_at INTEGER NOT NULL,
  PRIMARY KEY (ns, entity, resource, id)
) WITHOUT ROWID;
CREATE TABLE pauses (ns TEXT, entity TEXT, until INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (ns, entity)) WITHOUT ROWID;
`,
];

const SCHEMA_VERSION = STEPS.length;

/** The tables with the data of namespaces; the registry's own audit records are under the namespace "_". */
export const OWNED_TABLES = [
  'buckets',
  'configs',
  'entities',
  'audit',
  'usage',
  'managed',
  'receipts',
  'pauses',
] as const;

/** The state of a file; `older`: Headgate's, in a format that lacks some tables. */
export type FileState = 'ours' | 'older' | 'empty';

/** Refuses files that are not Headgate's, and those of an unknown format. */
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

/**
 * Brings an empty or older file to the current format. Runs inside a transaction, so other processes see all of it or
 * nothing.
 */
export function completeSchema(database: SqliteDatabase): void {
  for (const step of STEPS.slice(pragma(database, 'user_version'))) database.exec(step);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
}

function pragma(database: SqliteDatabase, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[0] ?? 0);
}

function notOurs(path: string): ValidationError {
  return new ValidationError('store', 'the path of a Headgate file, or of a missing file', path);
}
