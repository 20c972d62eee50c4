import type { NamespaceRecord } from '../../backend.js';
import { NamespaceConflict, NamespaceNotFound, ValidationError } from '../../core/errors.js';
import { checkNamespace } from '../../core/identifiers.js';
import { type Listing, listing, type ListOptions } from './listing.js';
import type { StoreConnection } from '../store-connection.js';

export interface Namespace extends Omit<NamespaceRecord, 'createdAtMs'> {
  readonly createdAt: Date;
}

/** Tenants of the store: nothing is shared between two of them. */
export class NamespacesApi {
  readonly #store: StoreConnection;

  constructor(store: StoreConnection) {
    this.#store = store;
  }

  /** Makes a namespace, or gives the one that has the name. */
  async register(name: string): Promise<Namespace> {
    checkNamespace(name, 'name');
    // 8 bytes are 11 characters, as published.
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('base64url');
    const record = await this.#store.changeRegistry('registering a namespace', (store, call) =>
      store.register(call, name, id),
    );
    return viewOf(record);
  }

  /** The namespace, or null if the name is not registered. */
  async get(name: string): Promise<Namespace | null> {
    checkNamespace(name, 'name');
    const record = await this.#store.callRegistry('reading a namespace', (store, call) => store.read(call, name));
    return record === undefined ? null : viewOf(record);
  }

  list(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, viewOf, async (page) => {
      return this.#store.callRegistry('listing namespaces', (store, call) => store.list(call, page));
    });
  }

  /** Those that no name leads to any more: deleted, or purged. Their ids are for `recover` and `purge`. */
  orphans(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, viewOf, async (page) => {
      return this.#store.callRegistry('listing orphans', (store, call) => store.orphans(call, page));
    });
  }

  /** Closes a namespace to everybody; its data stays until `purge`, and `recover` brings it back. */
  async delete(name: string): Promise<Namespace> {
    checkNamespace(name, 'name');
    const record = await this.#store.changeRegistry('deleting a namespace', (store, call) => store.delete(call, name));
    return viewOf(record);
  }

  /** Brings a deleted namespace back whole, by its name or its id. */
  async recover(nameOrId: string): Promise<Namespace> {
    const id = await this.#orphanId(nameOrId);
    const record = await this.#store.changeRegistry('recovering a namespace', (store, call) => store.recover(call, id));
    return viewOf(record);
  }

  /** Removes everything that a deleted namespace had, by its name or its id. Gives how many records that were. */
  async purge(nameOrId: string): Promise<{ readonly removed: number }> {
    const id = await this.#orphanId(nameOrId);
    // The more there is, the longer it takes.
    const patienceMs = null;
    const removed = await this.#store.changeRegistry(
      'purging a namespace',
      (store, call) => store.purge(call, id),
      patienceMs,
    );
    return { removed };
  }

  /** A name may have been deleted more than once: then only an id is clear. */
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
