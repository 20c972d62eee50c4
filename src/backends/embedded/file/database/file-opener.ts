import { existsSync, statSync } from 'node:fs';
import { BackendUnavailable, InfrastructureError } from '../../../../core/errors.js';
import type { EpochMs } from '../../../../core/units.js';
import { type FileConnection, connectionTo, transaction } from './connection.js';
import { loadDriver, type SqliteDatabase, type SqliteDriver } from './driver.js';
import { completeSchema, inspectSchema } from './schema.js';

export interface OpenerOptions {
  readonly path: string;
  readonly synchronous: 'normal' | 'full';
  /** The first namespace of a new file. */
  readonly namespace: { readonly id: string; readonly name: string };
  /** Unless given: the driver of this Node. */
  readonly driver?: SqliteDriver;
}

/** Opens a path as a database, and creates the tables that it lacks. */
export class FileOpener {
  readonly #options: OpenerOptions;
  #driver: SqliteDriver | null;
  #hadFile = false;

  constructor(options: OpenerOptions) {
    this.#options = options;
    this.#driver = options.driver ?? null;
  }

  get path(): string {
    return this.#options.path;
  }

  async load(): Promise<void> {
    this.#driver ??= await loadDriver();
  }

  /** False also while another process is about to fill an empty file. */
  hasContent(): boolean {
    return existsSync(this.path) && statSync(this.path).size > 0;
  }

  /** `nowMs`: creates the tables of an empty file. null: leaves an empty file alone, and returns null. */
  connect(nowMs: EpochMs | null): FileConnection | null {
    const { path, synchronous } = this.#options;
    const database = this.#open(path);
    try {
      const connection = connectionTo(database, false);
      // In one transaction: another process may be creating the file.
      const state = transaction(connection, 'BEGIN', () => inspectSchema(database, path));
      if (state === 'empty' && nowMs === null) {
        database.close();
        return null;
      }
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
      if (nowMs === null) connection.isOlder = state === 'older';
      else this.complete(connection, nowMs);
      // After the first read, SQLite has the log and its index open, and no other process removes them.
      database.prepare('SELECT 1 FROM sqlite_schema').get();
      this.#hadFile = true;
      return connection;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** An empty store that no other connection sees. */
  connectToMemory(): FileConnection {
    return this.complete(connectionTo(this.#open(':memory:'), false), 0);
  }

  /** Creates the missing tables and the first namespace, unless another process did. */
  complete(connection: FileConnection, nowMs: EpochMs): FileConnection {
    const { database, registry } = connection;
    const { path, namespace } = this.#options;
    transaction(connection, 'BEGIN IMMEDIATE', () => {
      const state = inspectSchema(database, path);
      if (state !== 'ours') completeSchema(database);
      if (state === 'empty') registry.write({ ...namespace, status: 'active', createdAtMs: nowMs });
    });
    connection.isOlder = false;
    return connection;
  }

  #open(path: string): SqliteDatabase {
    if (this.#driver === null) throw new BackendUnavailable(`${this.path} is not open`, 'closed');
    let database: SqliteDatabase;
    try {
      database = this.#driver.open(path);
    } catch (cause) {
      if (this.#hadFile)
        throw new BackendUnavailable(`${path} was removed, and cannot be created again`, 'server', { cause });
      const needs = 'its folder must exist, and it must be a file that this process may read and write';
      throw new InfrastructureError('infrastructure.file', `Cannot open ${path}: ${needs}`, { cause });
    }
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  }
}
