import type { Awaitable, Call, NamespaceStore, RegistryCall } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Table } from '../client/requests.js';
import { createNamespaceGate, type NamespaceGate } from './namespace-gate.js';
import { createVersionGate, type VersionGate } from './version-gate.js';

/**
 * The namespace that was admitted last, and the times of calls that need no check: until a record must be read again. It
 * ends when a gate reads a record or drops one from its cache.
 */
export interface Pass {
  readonly namespaceId: string | null;
  readonly fromMs: EpochMs;
  readonly untilMs: EpochMs;
}

const NO_PASS: Pass = { namespaceId: null, fromMs: Infinity, untilMs: -Infinity };

/** A gate of namespaces that also checks the version of the table. A warm call compares the pass, and asks no gate. */
export interface Gates extends NamespaceGate {
  readonly versions: VersionGate;
  readonly pass: Pass;
}

export function createGates(table: Table, ours?: number): Gates {
  const endPass = (): void => {
    gates.pass = NO_PASS;
  };
  const versions = createVersionGate(table, ours, endPass);
  const namespaces = createNamespaceGate(table, endPass);
  const gates = {
    ...namespaces,
    versions,
    pass: NO_PASS,
    check(call: Call): Awaitable<void> {
      const version = versions.check(call);
      if (version !== undefined) return both(version, async () => namespaces.check(call));
      const namespace = namespaces.check(call);
      if (namespace !== undefined) return namespace;
      const { namespaceId, nowMs: fromMs } = call;
      const untilMs = Math.min(versions.nextReadMs, namespaces.nextReadMs(namespaceId));
      gates.pass = { namespaceId, fromMs, untilMs };
    },
  };
  return gates;
}

/** Both records are read in parallel if both must be read. */
async function both(version: Promise<void>, namespace: () => Promise<void>): Promise<void> {
  await Promise.all([version, namespace()]);
}

/** The registry does not pass the gate of a namespace. */
export function registryWithVersionCheck(store: NamespaceStore, versions: VersionGate): NamespaceStore {
  const checked =
    <C extends RegistryCall, A extends readonly unknown[], T>(method: (call: C, ...args: A) => Awaitable<T>) =>
    (call: C, ...args: A): Awaitable<T> => {
      const version = versions.check(call);
      return version === undefined ? method(call, ...args) : version.then(() => method(call, ...args));
    };
  return {
    register: checked(store.register),
    read: checked(store.read),
    list: checked(store.list),
    orphans: checked(store.orphans),
    delete: checked(store.delete),
    recover: checked(store.recover),
    purge: checked(store.purge),
    audit: checked(store.audit),
  };
}
