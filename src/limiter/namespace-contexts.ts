import { isHeadgateError } from '../core/errors.js';
import { buildFirstNamespaceId } from '../core/identifiers.js';
import type { EpochMs } from '../core/units.js';
import { ConfigResolver } from './config/config-resolver.js';
import type { Context } from './context.js';
import { HeldLeases } from './lease/held-leases.js';
import { KnownPauses } from './outage/known-pauses.js';
import { report, type StoreContext } from './store-context.js';
import { WaitingLines } from './waiting/waiting-lines.js';

/** An id that no namespace can have. */
const UNOPENED = '?';

/** The contexts of the namespaces that this process uses in one store. */
export class NamespaceContexts {
  readonly #store: StoreContext;
  /** In store time, so null until the store has answered. */
  #openedAtMs: EpochMs | null = null;
  /** By the id of the namespace. */
  readonly #contexts = new Map<string, Context>();
  /** Limits in memory for the outage policy `local`. By the name of the namespace, because its id may not be known yet. */
  readonly #fallbacks = new Map<string, Context>();
  readonly #createFallback: (namespace: string) => StoreContext;

  /** `createFallback`: makes the store in memory that replaces `store` for one namespace while `store` does not answer. */
  constructor(store: StoreContext, createFallback: (namespace: string) => StoreContext) {
    this.#store = store;
    this.#createFallback = createFallback;
  }

  /** The context of a namespace that was read from the store. By id, because another namespace may get the name later. */
  opened(namespace: string, namespaceId: string): Context {
    this.#openedAtMs ??= this.#store.clock.now();
    return this.#at(namespaceId, namespace, namespaceId);
  }

  /** For decisions by the outage policy before the store has answered once. It makes no calls to the store. */
  unopened(namespace: string): Context {
    return this.#at(UNOPENED + namespace, namespace, UNOPENED);
  }

  /** undefined: this process does not use the namespace. */
  nameOf(namespaceId: string): string | undefined {
    return this.#contexts.get(namespaceId)?.namespace;
  }

  all(): Iterable<Context> {
    return this.#contexts.values();
  }

  #at(key: string, namespace: string, namespaceId: string): Context {
    const known = this.#contexts.get(key);
    if (known !== undefined) return known;
    const context = this.#create(this.#store, namespace, namespaceId);
    this.#contexts.set(key, context);
    return context;
  }

  #create(store: StoreContext, namespace: string, namespaceId: string): Context {
    const openedAtMs = this.#openedAtMs ?? store.clock.now();
    const code = { limits: store.options.limits, openedAtMs };
    return {
      ...store,
      namespace,
      namespaceId,
      resolver: new ConfigResolver(store, { namespace, namespaceId }, code),
      lines: new WaitingLines(store.clock, store.random),
      firstPlainLease: null,
      firstStoredLease: null,
      heldLeases: new HeldLeases(store.clock, (error) => {
        // A deleted namespace has no leases to release.
        if (!isHeadgateError(error, 'namespace.missing')) report(store.options, error, 'closing with open leases');
      }),
      knownPauses: new KnownPauses(),
      fallback: () => this.#fallbackOf(namespace),
    };
  }

  #fallbackOf(namespace: string): Context {
    const known = this.#fallbacks.get(namespace);
    if (known !== undefined) return known;
    const store = this.#createFallback(namespace);
    const fallback = this.#create(store, namespace, buildFirstNamespaceId(namespace));
    this.#fallbacks.set(namespace, fallback);
    return fallback;
  }
}
