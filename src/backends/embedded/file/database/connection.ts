import type { Call } from '../../../../backend.js';
import { requireActive } from '../../../../core/config/namespaces.js';
import type { Space } from '../../storage.js';
import { BucketRows } from '../rows/bucket-rows.js';
import { isBusy, type SqliteDatabase } from './driver.js';
import type { FileIdentity } from './file-identity.js';
import { FileRegistry } from '../file-registry.js';
import { FileSpace } from '../file-space.js';
import { KnownBuckets } from '../rows/known-buckets.js';
import { Maintenance } from '../maintenance.js';
import { createStatements, type Statements } from './statements.js';

/** Reads see one snapshot of the file; writes hold the write lock from their start. */
export type Begin = 'BEGIN' | 'BEGIN IMMEDIATE';

/** An open database, with what belongs to this one opening of it. */
export interface FileConnection {
  readonly database: SqliteDatabase;
  readonly sql: Statements;
  readonly registry: FileRegistry;
  readonly maintenance: Maintenance;
  readonly known: KnownBuckets;
  /** Never used again. Without it, a full garbage collection drops the code that V8 compiled for spaces and their rows. */
  firstSpace: Space | null;
  /** The file has an older format that lacks tables. The next write adds them; a read does not. */
  isOlder: boolean;
  /** null: an in-memory database. */
  identity: FileIdentity | null;
}

export function connectionTo(database: SqliteDatabase, isOlder: boolean): FileConnection {
  const sql = createStatements(database);
  return {
    database,
    sql,
    registry: new FileRegistry(sql),
    maintenance: new Maintenance(sql),
    known: new KnownBuckets(),
    firstSpace: null,
    isOlder,
    identity: null,
  };
}

/** The tables of an active namespace, inside a transaction. */
export function spaceOf({ sql, registry }: FileConnection, namespaceId: string): Space {
  requireActive(registry.byId(namespaceId), namespaceId);
  return new FileSpace(sql, namespaceId);
}

/** Runs its argument in a transaction. */
export type Transact = <T>(work: () => T) => T;

/**
 * Writes to the tables of an active namespace. The first attempt uses the buckets that this connection knows. If that may
 * have led to a wrong result or error, nothing of it is committed, and the second attempt reads the file.
 */
export function writeSpace<T>(
  connection: FileConnection,
  { namespaceId, nowMs }: Call,
  transact: Transact,
  work: (space: Space) => T,
): T {
  const { sql, registry, maintenance, known } = connection;
  const attempt = (rows: BucketRows): T => {
    const result = transact(() => {
      if (rows.isProven) requireActive(registry.byId(namespaceId), namespaceId);
      const space = new FileSpace(sql, namespaceId, rows);
      connection.firstSpace ??= space;
      const done = work(space);
      rows.prove();
      maintenance.afterWrite(nowMs);
      return done;
    });
    known.keep(namespaceId, rows.written);
    return result;
  };
  const guesses = known.of(namespaceId);
  if (guesses !== undefined) {
    const rows = new BucketRows(sql, namespaceId, guesses);
    try {
      return attempt(rows);
    } catch (error) {
      if (rows.isProven || isBusy(error)) throw error;
    }
  }
  return attempt(new BucketRows(sql, namespaceId, null));
}

/**
 * Commits what `work` did, or nothing if it throws. BEGIN and COMMIT are not prepared: a prepared statement that finds the
 * file locked stays active in libsql, which has no way to reset it, and SQLite then refuses every COMMIT of the connection.
 */
export function transaction<T>({ database }: FileConnection, begin: Begin, work: () => T): T {
  database.exec(begin);
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // The transaction has ended already, for example because the disk is full. That error matters more than this one.
  }
}
