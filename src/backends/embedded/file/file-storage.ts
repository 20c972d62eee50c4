import { existsSync, statSync } from 'node:fs';
import type { Awaitable, Call, RegistryCall } from '../../../backend.js';
import { BackendUnavailable, InfrastructureError } from '../../../core/errors.js';
import { requireActive } from '../../../core/config/namespaces.js';
import type { EpochMs } from '../../../core/units.js';
import type { Registry, Space, Storage } from '../storage.js';
import { explain, isBusy, loadDriver, type SqliteDatabase, type SqliteDriver } from './driver.js';
import type { HostTime } from './file-clock.js';
import { type FileIdentity, identify, isSameStore, isWithoutIndex, removeOrphans } from './file-identity.js';
import { FileRegistry } from './file-registry.js';
import { FileSpace } from './file-space.js';
import { readHostTime } from './host-time.js';
import { Maintenance } from './maintenance.js';
import { completeSchema, inspectSchema } from './schema.js';
import { createStatements, type Statements } from './statements.js';
import { TimeKeeper } from './time-keeper.js';
import { nap, NAPS, retryWhileBusy } from './wait-for-lock.js';

export interface FileStorageOptions {
  readonly path: string;
  readonly synchronous: 'normal' | 'full';
  /** The first namespace of a new file. */
  readonly namespace: { readonly id: string; readonly name: string };
  /** Unless given: the driver of this Node. */
  readonly driver?: SqliteDriver;
  /** Unless given: the clocks of this machine. */
  readonly host?: HostTime;
}

/** Reads see one snapshot of the file; writes hold the write lock from their start. */
type Begin = 'BEGIN' | 'BEGIN IMMEDIATE';

interface Connection {
  readonly database: SqliteDatabase;
  readonly sql: Statements;
  readonly registry: FileRegistry;
  readonly maintenance: Maintenance;
  /** The file has an older format that lacks tables. The next write adds them; a read does not. */
  isOlder: boolean;
  /** null: an in-memory database. */
  identity: FileIdentity | null;
}

/** How often the path is compared with the open file, by the time of the calls. */
const COMPARE_EVERY_MS = 1_000;

/**
 * For this long after an open, every call compares. The three files cannot be replaced at once: an existing log may
 * belong to the previous file, and is removed when the last process has noticed the replacement.
 */
const YOUNG_MS = 2 * COMPARE_EVERY_MS;

/** How often a path is opened that leads to another file each time, before the call fails. */
const MAX_OPENS = 3;

/**
 * One SQLite file in WAL mode. A transaction is synchronous and short. While another process holds the lock, the call
 * waits asynchronously, so that the event loop stays free. A missing file is created by the first write, not by a read:
 * until then reads see an empty store.
 */
export class FileStorage implements Storage {
  readonly name = 'file';
  readonly ephemeral = false;
  readonly #options: FileStorageOptions;
  #driver: SqliteDriver | null;
  #file: Connection | null = null;
  /** The empty store that reads see while there is no file. */
  #blank: Connection | null = null;
  #closed = false;
  #users = 0;
  /** The number of calls that wait for another process. */
  #waiting = 0;
  readonly #time: TimeKeeper;
  /** When the path was last compared with the open file. NaN: the next call must compare. */
  #comparedAtMs = Number.NaN;
  /** When the open file was first used. NaN: not yet. */
  #usedFromMs = Number.NaN;
  #hadFile = false;
  /** Errors that the next call reports. */
  readonly #toReport: InfrastructureError[] = [];

  constructor(options: FileStorageOptions) {
    this.#options = options;
    this.#driver = options.driver ?? null;
    this.#time = new TimeKeeper(options.host ?? readHostTime(), options.path);
  }

  /** null before it is open: the time in the file comes first. */
  storeTimeMs(): EpochMs | null {
    return this.#users === 0 ? null : this.#time.now();
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

  /** Closes when the last user closes. */
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
    const attempt = (): T => {
      try {
        return this.#explained(() => this.#attempt(begin, call.nowMs, work));
      } finally {
        for (const error of this.#toReport.splice(0)) call.tuning?.onError?.(error, 'the file store');
      }
    };
    for (let naps = 0; ; naps++) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
        // If other calls are waiting, the lock is a long one.
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
      // After a failure, the path may lead to another file.
      if (!isBusy(error)) this.#comparedAtMs = Number.NaN;
      throw explain(error, this.#options.path);
    }
  }

  #attempt<T>(begin: Begin, nowMs: EpochMs, work: (connection: Connection) => T): T {
    const connection = this.#connectionFor(begin, nowMs);
    return transaction(connection, begin, () => {
      const result = work(connection);
      if (!connection.isOlder && connection.identity !== null) {
        this.#report(this.#time.keep(connection.sql, begin === 'BEGIN IMMEDIATE', nowMs));
      }
      return result;
    });
  }

  #report(error: InfrastructureError | null): void {
    if (error !== null) this.#toReport.push(error);
  }

  /** The open file, if the path still leads to it. */
  #sameFile(nowMs: EpochMs): Connection | null {
    const file = this.#file;
    if (file === null || file.identity === null) return file;
    if (Number.isNaN(this.#usedFromMs)) this.#usedFromMs = nowMs;
    const isYoung = Math.abs(nowMs - this.#usedFromMs) < YOUNG_MS;
    if (!isYoung && Math.abs(nowMs - this.#comparedAtMs) < COMPARE_EVERY_MS) return file;
    this.#comparedAtMs = nowMs;
    const found = identify(this.#options.path);
    if (isSameStore(found, file.identity)) return file;
    this.#leave(file, file.identity, found);
    return null;
  }

  /** Closes a file whose path leads to another file, or to none. */
  #leave({ database }: Connection, left: FileIdentity, found: FileIdentity): void {
    const { path } = this.#options;
    this.#file = null;
    try {
      // The file may have been renamed without its log, so write the log into it.
      if (found.file === '') database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // For example, the disk is full. The data belongs to a file that is no longer the store.
    }
    // Before the close: while they are open here, no other files have their inodes.
    removeOrphans(path, left);
    database.close();
    const what = found.file === '' ? 'removed' : 'replaced';
    const then = 'Its state and its leases are no longer used; the store is now the file at that path';
    this.#report(new InfrastructureError('infrastructure.file', `${path} was ${what} while it was open. ${then}`));
  }

  #connectionFor(begin: Begin, nowMs: EpochMs): Connection {
    if (this.#closed) throw new BackendUnavailable(`${this.#options.path} is closed`, 'closed');
    const writes = begin === 'BEGIN IMMEDIATE';
    this.#file = this.#sameFile(nowMs);
    if (this.#file !== null) return writes && this.#file.isOlder ? this.#complete(this.#file, nowMs) : this.#file;
    const file = writes || hasContent(this.#options.path) ? this.#connect(writes ? nowMs : null) : null;
    if (file !== null) return file;
    this.#blank ??= this.#prepare(this.#openDatabase(':memory:'), 0);
    return this.#blank;
  }

  /** `nowMs`: creates the tables of an empty file. null: leaves an empty file alone, and returns null. */
  #connect(nowMs: EpochMs | null): Connection | null {
    const { path } = this.#options;
    for (let opens = 0; opens < MAX_OPENS; opens++) {
      const before = identify(path).file;
      const connection = this.#connectOnce(nowMs);
      if (connection === null) return null;
      const identity = identify(path);
      // The file was replaced meanwhile, and it is not known which one is open. Or, after a replacement, another
      // connection of this process has the new file with an index whose path was removed: SQLite shares that index
      // until it is closed.
      if ((before !== '' && identity.file !== before) || (this.#hadFile && isWithoutIndex(identity))) {
        connection.database.close();
        continue;
      }
      connection.identity = identity;
      this.#file = connection;
      this.#usedFromMs = Number.NaN;
      this.#hadFile = true;
      if (!connection.isOlder) this.#report(this.#time.follow(connection.sql));
      return connection;
    }
    throw new BackendUnavailable(`${path} was replaced while it was being opened`, 'server');
  }

  #connectOnce(nowMs: EpochMs | null): Connection | null {
    const { path, synchronous } = this.#options;
    const database = this.#openDatabase(path);
    try {
      // In one transaction: another process may be creating the file.
      const state = transaction(connectionTo(database, false), 'BEGIN', () => inspectSchema(database, path));
      if (state === 'empty' && nowMs === null) {
        database.close();
        return null;
      }
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
      const connection = nowMs === null ? connectionTo(database, state === 'older') : this.#prepare(database, nowMs);
      // After the first read, SQLite has the log and its index open, and no other process removes them.
      database.prepare('SELECT 1 FROM sqlite_schema').get();
      return connection;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #prepare(database: SqliteDatabase, nowMs: EpochMs): Connection {
    return this.#complete(connectionTo(database, false), nowMs);
  }

  /** Creates the missing tables and the first namespace, unless another process did. */
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
      if (this.#hadFile)
        throw new BackendUnavailable(`${path} was removed, and cannot be created again`, 'server', { cause });
      const needs = 'its folder must exist, and it must be a file that this process may read and write';
      throw new InfrastructureError('infrastructure.file', `Cannot open ${path}: ${needs}`, { cause });
    }
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  }
}

function connectionTo(database: SqliteDatabase, isOlder: boolean): Connection {
  const sql = createStatements(database);
  return { database, sql, registry: new FileRegistry(sql), maintenance: new Maintenance(sql), isOlder, identity: null };
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
    // The transaction has ended already, for example because the disk is full. That error matters more than this one.
  }
}

/** Another process is about to fill an empty file. */
function hasContent(path: string): boolean {
  return existsSync(path) && statSync(path).size > 0;
}
