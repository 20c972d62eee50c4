import { randomBytes } from 'node:crypto';
import type { Awaitable, NamespaceRecord } from '../backend.js';
import { checkNamespace } from '../core/identifiers.js';
import { callStore, type Context } from './context.js';
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
    const id = randomBytes(8).toString('base64url');
    const context = await this.#context();
    const record = await callStore(context, 'registering a namespace', ({ nowMs }) =>
      context.backend.namespaces.register(name, id, nowMs),
    );
    return viewOf(record);
  }

  /** The namespace, or null if the name is not registered. */
  async get(name: string): Promise<Namespace | null> {
    checkNamespace(name, 'name');
    const context = await this.#context();
    const record = await callStore(context, 'reading a namespace', () => context.backend.namespaces.read(name));
    return record === undefined ? null : viewOf(record);
  }

  list(options: ListOptions = {}): Listing<Namespace> {
    return listing(options, async (page) => {
      const context = await this.#context();
      const { items, next } = await callStore(context, 'listing namespaces', () =>
        context.backend.namespaces.list(page),
      );
      return { items: items.map(viewOf), next };
    });
  }
}

function viewOf({ createdAtMs, ...namespace }: NamespaceRecord): Namespace {
  return { ...namespace, createdAt: new Date(createdAtMs) };
}
