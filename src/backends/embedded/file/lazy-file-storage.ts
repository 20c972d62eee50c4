import type { Awaitable, Call, RegistryCall } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Registry, Space, Storage } from '../storage.js';
import type { FileStorage, FileStorageOptions } from './file-storage.js';

/**
 * A file store whose code is loaded when it is opened: with the modules of Node that it needs, that code takes a fifth of the
 * time of `import 'headgate'`, and most programs use another store.
 */
export class LazyFileStorage implements Storage {
  readonly name = 'file';
  readonly ephemeral = false;
  readonly #options: FileStorageOptions;
  #loaded: FileStorage | null = null;

  constructor(options: FileStorageOptions) {
    this.#options = options;
  }

  async open(timeoutMs: number): Promise<void> {
    const { FileStorage: Loaded } = await import('./file-storage.js');
    this.#loaded ??= new Loaded(this.#options);
    await this.#loaded.open(timeoutMs);
  }

  close(): void {
    this.#loaded?.close();
  }

  storeTimeMs(): EpochMs | null {
    return this.#loaded?.storeTimeMs() ?? null;
  }

  read<T>(call: Call, work: (space: Space) => T): Awaitable<T> {
    return this.#storage().read(call, work);
  }

  write<T>(call: Call, work: (space: Space) => T): Awaitable<T> {
    return this.#storage().write(call, work);
  }

  readRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T> {
    return this.#storage().readRegistry(call, work);
  }

  writeRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T> {
    return this.#storage().writeRegistry(call, work);
  }

  #storage(): FileStorage {
    if (this.#loaded === null) throw new TypeError('The store file was used before it was opened');
    return this.#loaded;
  }
}
