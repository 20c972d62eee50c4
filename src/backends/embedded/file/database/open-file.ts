import { BackendUnavailable, InfrastructureError } from '../../../../core/errors.js';
import type { EpochMs } from '../../../../core/units.js';
import type { Begin, FileConnection } from './connection.js';
import {
  type FileIdentity,
  hasSameLog,
  identify,
  isSameStore,
  isWithoutIndex,
  removeOrphans,
} from './file-identity.js';
import type { FileOpener } from './file-opener.js';

/** The events of an open file. */
export interface OpenFileEvents {
  /** A file was opened whose tables are complete: its time comes before any call. */
  onOpened(connection: FileConnection): void;
  onError(error: InfrastructureError): void;
}

/** How often the path is compared with the open file, by the time of the calls. */
const COMPARE_EVERY_MS = 1_000;

/**
 * For this long after an open, every call compares the log. The three files cannot be replaced at once: an existing log
 * may belong to the previous file, and is removed, with its index, when the last process has noticed the replacement.
 */
const YOUNG_MS = 2 * COMPARE_EVERY_MS;

/** How often a path is opened that leads to another file each time, before the call fails. */
const MAX_OPENS = 3;

/**
 * The connection to the file that a path leads to now. A file that was removed or replaced is closed, and the next one
 * opened. A missing file is created for the first write, not for a read: until then reads see an empty store.
 */
export class OpenFile {
  readonly #opener: FileOpener;
  readonly #events: OpenFileEvents;
  #file: FileConnection | null = null;
  /** The empty store that reads see while there is no file. */
  #blank: FileConnection | null = null;
  /** When the path was last compared with the open file. NaN: the next call must compare. */
  #comparedAtMs = Number.NaN;
  /** When the open file was first used. NaN: not yet. */
  #usedFromMs = Number.NaN;
  #hadFile = false;

  constructor(opener: FileOpener, events: OpenFileEvents) {
    this.#opener = opener;
    this.#events = events;
  }

  /** Opens an existing file. Creates nothing. */
  openExisting(): void {
    if (this.#file === null && this.#opener.hasContent()) this.#connect(null);
  }

  close(): void {
    this.#file?.database.close();
    this.#blank?.database.close();
    this.#file = null;
    this.#blank = null;
  }

  /** After a failure, the path may lead to another file. */
  compareAtNextCall(): void {
    this.#comparedAtMs = Number.NaN;
  }

  connectionFor(begin: Begin, nowMs: EpochMs): FileConnection {
    const writes = begin === 'BEGIN IMMEDIATE';
    this.#file = this.#sameFile(nowMs);
    if (this.#file !== null)
      return writes && this.#file.isOlder ? this.#opener.complete(this.#file, nowMs) : this.#file;
    const file = writes || this.#opener.hasContent() ? this.#connect(writes ? nowMs : null) : null;
    if (file !== null) return file;
    this.#blank ??= this.#opener.connectToMemory();
    return this.#blank;
  }

  /** The open file, if the path still leads to it. */
  #sameFile(nowMs: EpochMs): FileConnection | null {
    const file = this.#file;
    if (file === null || file.identity === null) return file;
    if (Number.isNaN(this.#usedFromMs)) this.#usedFromMs = nowMs;
    const { path } = this.#opener;
    const isYoung = Math.abs(nowMs - this.#usedFromMs) < YOUNG_MS;
    const wasCompared = Math.abs(nowMs - this.#comparedAtMs) < COMPARE_EVERY_MS;
    if (wasCompared && (!isYoung || hasSameLog(path, file.identity))) return file;
    this.#comparedAtMs = nowMs;
    const found = identify(path);
    if (isSameStore(found, file.identity)) return file;
    this.#leave(file, file.identity, found);
    return null;
  }

  /** Closes a file whose path leads to another file, or to none. */
  #leave({ database }: FileConnection, left: FileIdentity, found: FileIdentity): void {
    const { path } = this.#opener;
    this.#file = null;
    try {
      // The file may have been renamed without its log, so write the log into it.
      if (found.file === '') database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // For example, the disk is full. The data belongs to a file that is no longer the store.
    }
    // Before the close: while they are open here, no other files have their inodes.
    removeOrphans(path, left);
    // A database that stays open would keep a lock on a file that is still the store, if only the log was replaced; and
    // SQLite would remove the log of the new file, which it finds by its name, whenever it closes the old one.
    database.leave();
    const what = found.file === '' ? 'removed' : 'replaced';
    const then = 'Its state and its leases are no longer used; the store is now the file at that path';
    this.#events.onError(
      new InfrastructureError('infrastructure.file', `${path} was ${what} while it was open. ${then}`),
    );
  }

  /** `nowMs`: creates the tables of an empty file. null: leaves an empty file alone, and returns null. */
  #connect(nowMs: EpochMs | null): FileConnection | null {
    const { path } = this.#opener;
    for (let opens = 0; opens < MAX_OPENS; opens++) {
      const before = identify(path).file;
      const connection = this.#opener.connect(nowMs);
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
      if (!connection.isOlder) this.#events.onOpened(connection);
      return connection;
    }
    throw new BackendUnavailable(`${path} was replaced while it was being opened`, 'server');
  }
}
