import { existsSync, statSync } from 'node:fs';
import type { Awaitable, Call, RegistryCall } from '../../../backend.js';
import { BackendUnavailable } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { requireActive } from '../namespaces.js';
import type { Registry, Space, Storage } from '../storage.js';
import { isBusy, loadDriver, type SqliteDatabase, type SqliteDriver } from './driver.js';
import { FileRegistry } from './file-registry.js';
import { FileSpace } from './file-space.js';
import { Maintenance } from './maintenance.js';
import { createSchema, inspectSchema } from './schema.js';
import { createStatements, type Statements } from './statements.js';

export interface FileStorageOptions {
  readonly path: string;
  readonly synchronous: 'normal' | 'full';
  /** The namespace that a file which does not exist yet is born with. */
  readonly namespace: { readonly id: string; readonly name: string };
  /** The one that this Node has, unless given. */
  readonly driver?: SqliteDriver;
}

/** Reads see one state of the file; writes have the only lock from their beginning. */
type Begin = 'BEGIN' | 'BEGIN IMMEDIATE';

interface Connection {
  readonly database: SqliteDatabase;
  readonly sql: Statements;
  readonly registry: FileRegistry;
  readonly maintenance: Maintenance;
}

/** Turns of the event loop before a writer that found the file locked begins to sleep: most locks last some 50 us. */
const TURNS_BEFORE_SLEEP = 20;
const MAX_SLEEP_MS = 20;

/**
 * One SQLite file in WAL mode. A transaction is synchronous and short; when another process holds the lock, the wait
 * for it is not, so that the event loop stays free. A file that does not exist is made by the first write, not by
 * looking: until then reads see a store that is empty.
 */
export class FileStorage implements Storage {
  readonly name = 'file';
  readonly ephemeral = false;
  readonly #options: FileStorageOptions;
  #driver: SqliteDriver | null;
  #file: Connection | null = null;
  /** What reads see while there is no file. */
  #blank: Connection | null = null;
  #closed = false;

  constructor(options: FileStorageOptions) {
    this.#options = options;
    this.#driver = options.driver ?? null;
  }

  async open(timeoutMs: number): Promise<void> {
    this.#closed = false;
    this.#driver ??= await loadDriver();
    if (this.#file === null && hasContent(this.#options.path)) {
      await retryWhileBusy(timeoutMs, 'opening the file', () => this.#connect(null));
    }
  }

  close(): void {
    this.#closed = true;
    this.#file?.database.close();
    this.#blank?.database.close();
    this.#file = null;
    this.#blank = null;
  }

  read<T>(call: Call, work: (space: Space) => T): Awaitable<T> {
    return this.#transact('BEGIN', call, (connection) => work(spaceOf(connection, call.namespaceId)));
  }

  write<T>(call: Call, work: (space: Space) => T): Awaitable<T> {
    return this.#transact('BEGIN IMMEDIATE', call, (connection) => {
      const result = work(spaceOf(connection, call.namespaceId));
      connection.maintenance.afterWrite(call.nowMs);
      return result;
    });
  }

  readRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T> {
    return this.#transact('BEGIN', call, ({ registry }) => work(registry));
  }

  writeRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T> {
    return this.#transact('BEGIN IMMEDIATE', call, ({ registry }) => work(registry));
  }

  #transact<T>(begin: Begin, call: RegistryCall, work: (connection: Connection) => T): Awaitable<T> {
    const attempt = (): T => transaction(this.#connectionFor(begin, call.nowMs), begin, work);
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      return retryWhileBusy(call.timeoutMs, 'waiting for the file', attempt);
    }
  }

  #connectionFor(begin: Begin, nowMs: EpochMs): Connection {
    if (this.#closed) throw new BackendUnavailable(`${this.#options.path} is closed`, 'closed');
    if (this.#file !== null) return this.#file;
    const writes = begin === 'BEGIN IMMEDIATE';
    const file = writes || hasContent(this.#options.path) ? this.#connect(writes ? nowMs : null) : null;
    if (file !== null) return file;
    this.#blank ??= this.#prepare(this.#openDatabase(':memory:'), 0);
    return this.#blank;
  }

  /** `nowMs`: when a file without tables is made ours. null: it is left alone, and there is nothing to connect to. */
  #connect(nowMs: EpochMs | null): Connection | null {
    const { path, synchronous } = this.#options;
    const database = this.#openDatabase(path);
    try {
      // In one transaction: another process may be making the file at this moment.
      const state = transaction(connectionTo(database), 'BEGIN', () => inspectSchema(database, path));
      if (state === 'empty' && nowMs === null) {
        database.close();
        return null;
      }
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
      this.#file = nowMs === null ? connectionTo(database) : this.#prepare(database, nowMs);
      return this.#file;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** Makes the tables and the first namespace, unless another process was faster. */
  #prepare(database: SqliteDatabase, nowMs: EpochMs): Connection {
    const connection = connectionTo(database);
    transaction(connection, 'BEGIN IMMEDIATE', () => {
      if (inspectSchema(database, this.#options.path) !== 'empty') return;
      createSchema(database);
      connection.registry.write({ ...this.#options.namespace, status: 'active', createdAtMs: nowMs });
    });
    return connection;
  }

  #openDatabase(path: string): SqliteDatabase {
    if (this.#driver === null) throw new BackendUnavailable(`${this.#options.path} is not open`, 'closed');
    const database = this.#driver.open(path);
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  }
}

function connectionTo(database: SqliteDatabase): Connection {
  const sql = createStatements(database);
  return { database, sql, registry: new FileRegistry(sql), maintenance: new Maintenance(sql) };
}

function spaceOf({ sql, registry }: Connection, namespaceId: string): Space {
  requireActive(registry.byId(namespaceId), namespaceId);
  return new FileSpace(sql, namespaceId);
}

function transaction<T>(connection: Connection, begin: Begin, work: (connection: Connection) => T): T {
  const { database } = connection;
  database.exec(begin);
  try {
    const result = work(connection);
    database.exec('COMMIT');
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

/** A file of no length is one that another process is about to fill. */
function hasContent(path: string): boolean {
  return existsSync(path) && statSync(path).size > 0;
}

/** Waits with jitter for another process, in real time: what holds the lock is no fake. */
async function retryWhileBusy<T>(timeoutMs: number, where: string, attempt: () => T): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (let tries = 0; ; tries++) {
    await pause(tries);
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() < endMs) continue;
      throw new BackendUnavailable(`${where}: locked by other processes for ${timeoutMs} ms`, 'contended', {
        cause: error,
      });
    }
  }
}

function pause(tries: number): Promise<void> {
  return new Promise((resolve) => {
    if (tries < TURNS_BEFORE_SLEEP) setImmediate(resolve);
    else setTimeout(resolve, Math.random() * Math.min(MAX_SLEEP_MS, 2 ** (tries - TURNS_BEFORE_SLEEP)));
  });
}
