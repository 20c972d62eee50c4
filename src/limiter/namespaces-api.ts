import type { Awaitable, NamespaceRecord } from '../backend.js';
import { NamespaceConflict, NamespaceNotFound, ValidationError } from '../core/errors.js';
import { checkNamespace } from '../core/identifiers.js';
import { callStore, changeStore, type Context } from './context.js';
import { type Listing, listing, type ListOptions } from './listing.js';

export interface Namespace extends Omit<NamespaceRecord, 'createdAtMs'> {
  readonly createdAt: Date;
}

/** Tenants of the store: nothing is shared between two of them. */
export class NamespacesApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** Makes a namespace, or gives the one that has the name. */
  async register(name: string): Promise<Namespace> {
    checkNamespace(name, 'name');
    // 8 bytes are 11 characters, as published.
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('base64url');
    const context = await this.#context();
    const record = await changeStore(context, 'registering a namespace', (call) =>
      context.backend.namespaces.register(call, name, id),
    );
    return viewOf(record);
  }

  /** The namespace, or null if the name is not registered. */
  async get(name: string): Promise<Namespace | null> {
    checkNamespace(name, 'name');
    const context = await this.#context();
    const record = await callStore(context, 'reading a namespace', (call) =>
      context.backend.namespaces.read(call, name),
    );
    return record === undefined ? null : viewOf(record);
  }

  list(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, async (page) => {
      const context = await this.#context();
      const { items, next } = await callStore(context, 'listing namespaces', (call) =>
        context.backend.namespaces.list(call, page),
      );
      return { items: items.map(viewOf), next };
    });
  }

  /** Those that no name leads to any more: deleted, or purged. Their ids are for `recover` and `purge`. */
  orphans(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, async (page) => {
      const context = await this.#context();
      const { items, next } = await callStore(context, 'listing orphans', (call) =>
        context.backend.namespaces.orphans(call, page),
      );
      return { items: items.map(viewOf), next };
    });
  }

  /** Closes a namespace to everybody; its data stays until `purge`, and `recover` brings it back. */
  async delete(name: string): Promise<Namespace> {
    checkNamespace(name, 'name');
    const context = await this.#context();
    const record = await changeStore(context, 'deleting a namespace', (call) =>
      context.backend.namespaces.delete(call, name),
    );
    return viewOf(record);
  }

  /** Brings a deleted namespace back whole, by its name or its id. */
  async recover(nameOrId: string): Promise<Namespace> {
    const context = await this.#context();
    const id = await this.#orphanId(nameOrId);
    const record = await changeStore(context, 'recovering a namespace', (call) =>
      context.backend.namespaces.recover(call, id),
    );
    return viewOf(record);
  }

  /** Removes everything that a deleted namespace had, by its name or its id. Gives how many records that were. */
  async purge(nameOrId: string): Promise<{ readonly removed: number }> {
    const context = await this.#context();
    const id = await this.#orphanId(nameOrId);
    const removed = await changeStore(context, 'purging a namespace', (call) =>
      context.backend.namespaces.purge(call, id),
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
