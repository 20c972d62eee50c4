import type { Awaitable, NamespaceRecord, NamespaceStore, RegistryChange } from '../../backend.js';
import { NamespaceConflict, NamespaceNotFound, ValidationError } from '../../core/errors.js';
import { checkNamespace } from '../../core/identifiers.js';
import { type Listing, listing, type ListOptions } from './listing.js';
import type { StoreConnection } from '../store-connection.js';

/** A tenant of the store. */
export interface Namespace extends Omit<NamespaceRecord, 'createdAtMs'> {
  readonly createdAt: Date;
}

/** The tenants of the store. Two namespaces share no data. */
export class NamespacesApi {
  readonly #store: StoreConnection;
  readonly #principal: string | undefined;

  constructor(store: StoreConnection, principal: string | undefined) {
    this.#store = store;
    this.#principal = principal;
  }

  /** Creates a namespace, or returns the active one with that name. */
  async register(name: string): Promise<Namespace> {
    checkNamespace(name, 'name');
    // 8 bytes are 11 characters in base64url, the published format.
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('base64url');
    const record = await this.#change('registering a namespace', (store, call) => store.register(call, name, id));
    return viewOf(record);
  }

  /** The namespace; null if the name is not registered. */
  async get(name: string): Promise<Namespace | null> {
    checkNamespace(name, 'name');
    const record = await this.#store.callRegistry('reading a namespace', (store, call) => store.read(call, name));
    return record === undefined ? null : viewOf(record);
  }

  /** The active namespaces. */
  list(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, viewOf, async (page) => {
      return this.#store.callRegistry('listing namespaces', (store, call) => store.list(call, page));
    });
  }

  /** The namespaces that no name belongs to: deleted, or purged. `recover` and `purge` accept their ids. */
  orphans(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, viewOf, async (page) => {
      return this.#store.callRegistry('listing orphans', (store, call) => store.orphans(call, page));
    });
  }

  /** Makes a namespace unusable. Its data stays until `purge`; `recover` undoes the deletion. */
  async delete(name: string): Promise<Namespace> {
    checkNamespace(name, 'name');
    const record = await this.#change('deleting a namespace', (store, call) => store.delete(call, name));
    return viewOf(record);
  }

  /** Restores a deleted namespace with all its data, by its name or its id. */
  async recover(nameOrId: string): Promise<Namespace> {
    const id = await this.#orphanId(nameOrId);
    const record = await this.#change('recovering a namespace', (store, call) => store.recover(call, id));
    return viewOf(record);
  }

  /** Removes all data of a deleted namespace, by its name or its id. Returns how many records were removed. */
  async purge(nameOrId: string): Promise<{ readonly removed: number }> {
    const id = await this.#orphanId(nameOrId);
    // No deadline, because the duration depends on the amount of data.
    const noDeadline = null;
    const removed = await this.#change('purging a namespace', (store, call) => store.purge(call, id), noDeadline);
    return { removed };
  }

  #change<T>(
    where: string,
    start: (store: NamespaceStore, call: RegistryChange) => Awaitable<T>,
    timeoutMs?: number | null,
  ): Promise<T> {
    return this.#store.changeRegistry(where, start, { timeoutMs, principal: this.#principal });
  }

  /** Several deleted namespaces may have had the same name. Then only an id is accepted. */
  async #orphanId(nameOrId: string): Promise<string> {
    if (typeof nameOrId !== 'string') throw new ValidationError('namespace', 'a name or an id', nameOrId);
    const named: string[] = [];
    for await (const orphan of this.orphans({ limit: 1_000 })) {
      if (orphan.id === nameOrId) return orphan.id;
      if (orphan.name === nameOrId && orphan.status === 'deleted') named.push(orphan.id);
    }
    const [id] = named;
    if (named.length > 1)
      throw new NamespaceConflict(
        nameOrId,
        `was deleted ${named.length} times: name one of the ids ${named.join(', ')}`,
      );
    if (id !== undefined) return id;
    for await (const active of this.list({ limit: 1_000 })) {
      if (active.id === nameOrId || active.name === nameOrId)
        throw new NamespaceConflict(active.name, 'is active: delete it first');
    }
    throw new NamespaceNotFound(nameOrId);
  }
}

function viewOf({ createdAtMs, ...namespace }: NamespaceRecord): Namespace {
  return { ...namespace, createdAt: new Date(createdAtMs) };
}
