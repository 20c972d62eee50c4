import type { Backend } from '../../backend.js';

/**
 * A backend whose code is loaded when the store is opened, so that programs with another store do not load it. No other
 * method is called before that.
 */
export function lazyBackend(name: string, load: () => Promise<Backend>): Backend {
  let loaded: Backend | null = null;
  const store = (): Backend => {
    if (loaded === null) throw new TypeError(`The store ${name} was used before it was opened`);
    return loaded;
  };
  return {
    name,
    ephemeral: false,
    async load() {
      loaded ??= await load();
      await loaded.load?.();
    },
    open: (timeoutMs) => store().open(timeoutMs),
    close: () => loaded?.close(),
    storeTimeMs: () => loaded?.storeTimeMs?.() ?? null,
    consume: (call, request) => store().consume(call, request),
    adjust: (call, request) => store().adjust(call, request),
    charge: (call, request) => store().charge(call, request),
    operate: (call, request) => store().operate(call, request),
    extend: (call, request) => store().extend(call, request),
    peek: (call, levels) => store().peek(call, levels),
    get config() {
      return store().config;
    },
    get entities() {
      return store().entities;
    },
    get namespaces() {
      return store().namespaces;
    },
    get audit() {
      return store().audit;
    },
    get usage() {
      return store().usage;
    },
    get managed() {
      return store().managed;
    },
    get buckets() {
      return store().buckets;
    },
    get leases() {
      return store().leases;
    },
  };
}
