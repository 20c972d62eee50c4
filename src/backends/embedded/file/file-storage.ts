import { existsSync, statSync } from 'node:fs';
import type { Awaitable, Call, RegistryCall } from '../../../backend.js';
import { BackendUnavailable, InfrastructureError } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { requireActive } from '../namespaces.js';
import type { Registry, Space, Storage } from '../storage.js';
import { explain, isBusy, loadDriver, type SqliteDatabase, type SqliteDriver } from './driver.js';
import { FileRegistry } from './file-registry.js';
import { FileSpace } from './file-space.js';
import { Maintenance } from './maintenance.js';
import { completeSchema, inspectSchema } from './schema.js';
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
  /** Of a format that lacks tables: the next write adds them, no read does. */
  isOlder: boolean;
}

/**
 * A lock lasts some 100 us, which is less than the shortest timer. So whoever finds the file locked first naps a few
 * times, giving up the processor, which the holder may need to finish; half a millisecond in all. Only then does it
 * leave the thread to others. (Measured with 4 processes: spinning through turns of the event loop makes it 5 times worse.)
 */
const NAPS = 4;
const NAP_MS = 0.1;
/** Tries with the shortest timer before longer ones. */
const SHORT_SLEEPS = 4;
const MAX_SLEEP_MS = 20;

/**
 * How long before the end of a call's time a writer stops waiting for the lock: whoever called stops listening then, and
 * would take the silence for an outage, which the policy may answer with an admission. More than a timer is late by.
 */
const SPARE_PART = 0.1;
const LEAST_SPARE_MS = 15;

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
  #users = 0;
  /** Calls that wait for another process. */
  #waiting = 0;

  constructor(options: FileStorageOptions) {
    this.#options = options;
    this.#driver = options.driver ?? null;
  }

  async open(timeoutMs: number): Promise<void> {
    this.#driver ??= await loadDriver();
    this.#closed = false;
    const attempt = (): void => {
      if (this.#closed || this.#file !== null || !hasContent(this.#options.path)) return;
      this.#explained(() => this.#connect(null));
    };
    try {
      attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await this.#wait(timeoutMs, attempt);
    }
    this.#users += 1;
  }

  /** Closes with the last of those who opened it. */
  close(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
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
    const attempt = (): T => this.#explained(() => transaction(this.#connectionFor(begin, call.nowMs), begin, work));
    for (let naps = 0; ; naps++) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
        // Where others wait already, the lock is one of the long ones.
        if (naps >= NAPS || this.#waiting > 0) return this.#wait(call.timeoutMs, attempt);
        nap();
      }
    }
  }

  async #wait<T>(timeoutMs: number, attempt: () => T): Promise<T> {
    this.#waiting += 1;
    try {
      return await retryWhileBusy(timeoutMs, 'waiting for the file', attempt);
    } finally {
      this.#waiting -= 1;
    }
  }

  #explained<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw explain(error, this.#options.path);
    }
  }

  #connectionFor(begin: Begin, nowMs: EpochMs): Connection {
    if (this.#closed) throw new BackendUnavailable(`${this.#options.path} is closed`, 'closed');
    const writes = begin === 'BEGIN IMMEDIATE';
    if (this.#file !== null) return writes && this.#file.isOlder ? this.#complete(this.#file, nowMs) : this.#file;
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
      const state = transaction(connectionTo(database, false), 'BEGIN', () => inspectSchema(database, path));
      if (state === 'empty' && nowMs === null) {
        database.close();
        return null;
      }
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
      this.#file = nowMs === null ? connectionTo(database, state === 'older') : this.#prepare(database, nowMs);
      return this.#file;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #prepare(database: SqliteDatabase, nowMs: EpochMs): Connection {
    return this.#complete(connectionTo(database, false), nowMs);
  }

  /** Makes the tables that are missing, and the first namespace, unless another process was faster. */
  #complete(connection: Connection, nowMs: EpochMs): Connection {
    const { database, registry } = connection;
    transaction(connection, 'BEGIN IMMEDIATE', () => {
      const state = inspectSchema(database, this.#options.path);
      if (state !== 'ours') completeSchema(database);
      if (state === 'empty') registry.write({ ...this.#options.namespace, status: 'active', createdAtMs: nowMs });
    });
    connection.isOlder = false;
    return connection;
  }

  #openDatabase(path: string): SqliteDatabase {
    if (this.#driver === null) throw new BackendUnavailable(`${this.#options.path} is not open`, 'closed');
    let database: SqliteDatabase;
    try {
      database = this.#driver.open(path);
    } catch (cause) {
      const needs = 'its folder must exist, and it must be a file that this process may read and write';
      throw new InfrastructureError('infrastructure.file', `Cannot open ${path}: ${needs}`, { cause });
    }
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  }
}

function connectionTo(database: SqliteDatabase, isOlder: boolean): Connection {
  const sql = createStatements(database);
  return { database, sql, registry: new FileRegistry(sql), maintenance: new Maintenance(sql), isOlder };
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
    rollBack(database);
    throw error;
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // A full disk, say, has ended the transaction already: the error that did so says more than this one.
  }
}

/** A file of no length is one that another process is about to fill. */
function hasContent(path: string): boolean {
  return existsSync(path) && statSync(path).size > 0;
}

/** Waits with jitter for another process, in real time: what holds the lock is no fake. */
async function retryWhileBusy<T>(timeoutMs: number, where: string, attempt: () => T): Promise<T> {
  const endMs = performance.now() + timeoutMs - Math.max(LEAST_SPARE_MS, timeoutMs * SPARE_PART);
  for (let tries = 0; ; tries++) {
    if (performance.now() < endMs) await pause(tries, endMs - performance.now());
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

function pause(tries: number, mostMs: number): Promise<void> {
  const sleepMs = Math.random() * Math.min(MAX_SLEEP_MS, 2 ** Math.max(0, tries - SHORT_SLEEPS));
  return new Promise((resolve) => {
    setTimeout(resolve, Math.min(sleepMs, mostMs));
  });
}

const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread, not the processor. */
function nap(): void {
  Atomics.wait(NOBODY_WAKES, 0, 0, NAP_MS);
}
