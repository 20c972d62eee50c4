import type { Awaitable, Call, RegistryCall } from '../../../backend.js';
import { BackendUnavailable, type InfrastructureError } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import type { Registry, Space, Storage } from '../storage.js';
import {
  type Begin,
  type FileConnection,
  spaceOf,
  type Transact,
  transaction,
  writeSpace,
} from './database/connection.js';
import { fileErrorOf, isBusy } from './database/driver.js';
import type { HostTime } from './time/file-clock.js';
import { FileOpener, type OpenerOptions } from './database/file-opener.js';
import { readHostTime } from './time/host-time.js';
import { OpenFile } from './database/open-file.js';
import { TimeKeeper } from './time/time-keeper.js';
import { nap, NAPS, retryWhileBusy } from './database/wait-for-lock.js';

export interface FileStorageOptions extends OpenerOptions {
  /** Unless given: the clocks of this machine. */
  readonly host?: HostTime;
}

/**
 * One SQLite file in WAL mode. A transaction is synchronous and short. While another process holds the lock, the call
 * waits asynchronously, so that the event loop stays free.
 */
export class FileStorage implements Storage {
  readonly name = 'file';
  readonly ephemeral = false;
  readonly #path: string;
  readonly #opener: FileOpener;
  readonly #open: OpenFile;
  readonly #time: TimeKeeper;
  #closed = false;
  #users = 0;
  /** The number of calls that wait for another process. */
  #waiting = 0;
  /** Errors that the next call reports. */
  readonly #toReport: InfrastructureError[] = [];

  constructor(options: FileStorageOptions) {
    this.#path = options.path;
    this.#opener = new FileOpener(options);
    this.#open = new OpenFile(this.#opener, {
      onOpened: ({ sql }) => this.#report(this.#time.follow(sql)),
      onError: (error) => this.#report(error),
    });
    this.#time = new TimeKeeper(options.host ?? readHostTime(), options.path);
  }

  /** null before it is open: the time in the file comes first. */
  storeTimeMs(): EpochMs | null {
    return this.#users === 0 ? null : this.#time.now();
  }

  async open(timeoutMs: number): Promise<void> {
    await this.#opener.load();
    this.#closed = false;
    const attempt = (): void => {
      if (!this.#closed) this.#explained(() => this.#open.openExisting());
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
    this.#open.close();
  }

  read<T>(call: Call, work: (space: Space) => T): Awaitable<T> {
    return this.#transact('BEGIN', call, (connection, transact) =>
      transact(() => work(spaceOf(connection, call.namespaceId))),
    );
  }

  write<T>(call: Call, work: (space: Space) => T): Awaitable<T> {
    return this.#transact('BEGIN IMMEDIATE', call, (connection, transact) =>
      writeSpace(connection, call, transact, work),
    );
  }

  readRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T> {
    return this.#transact('BEGIN', call, ({ registry }, transact) => transact(() => work(registry)));
  }

  writeRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T> {
    return this.#transact('BEGIN IMMEDIATE', call, ({ registry }, transact) => transact(() => work(registry)));
  }

  #transact<T>(
    begin: Begin,
    call: RegistryCall,
    work: (connection: FileConnection, transact: Transact) => T,
  ): Awaitable<T> {
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
      if (!isBusy(error)) this.#open.compareAtNextCall();
      throw fileErrorOf(error, this.#path);
    }
  }

  #attempt<T>(begin: Begin, nowMs: EpochMs, work: (connection: FileConnection, transact: Transact) => T): T {
    if (this.#closed) throw new BackendUnavailable(`${this.#path} is closed`, 'closed');
    const connection = this.#open.connectionFor(begin, nowMs);
    return work(connection, (inner) =>
      transaction(connection, begin, () => {
        const result = inner();
        if (!connection.isOlder && connection.identity !== null) {
          this.#report(this.#time.keep(connection.sql, begin === 'BEGIN IMMEDIATE', nowMs));
        }
        return result;
      }),
    );
  }

  #report(error: InfrastructureError | null): void {
    if (error !== null) this.#toReport.push(error);
  }
}
