import { loadDriver } from '../../src/backends/embedded/file/database/driver.js';

/** The tables of format 1 with a row in each, as the first version of Headgate wrote them. */
const FORMAT_1 = `
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
INSERT INTO configs VALUES ('{ns}', 'system', '', '', '["rpm:60/min"]', 'local', 1);
INSERT INTO entities VALUES ('{ns}', 'user-1', '"Ann"', NULL, 0, '{"tier":"gold"}', 1800000000000, 1);
INSERT INTO namespaces VALUES ('{ns}', 'default', 'active', 1800000000000, 1);
PRAGMA journal_mode = WAL; PRAGMA application_id = 0x48656164; PRAGMA user_version = 1;
`;

export async function writeFormat1(path: string, namespaceId: string): Promise<void> {
  const database = (await loadDriver()).open(path);
  database.exec(FORMAT_1.replaceAll('{ns}', namespaceId));
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}
