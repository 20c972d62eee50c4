import type { AuditAction, NamespaceRecord, NamespaceStore, RegistryChange } from '../../backend.js';
import { NamespaceConflict, NamespaceNotFound } from '../../core/errors.js';
import { AUDIT_LIFE_MS } from '../../core/usage.js';
import type { Registry, Storage } from './storage.js';

/** Refuses everything but an active namespace: what was deleted is not used, and what is purged does not come back. */
export function requireActive(namespace: NamespaceRecord | undefined, id: string): void {
  if (namespace === undefined) throw new NamespaceNotFound(id);
  if (namespace.status !== 'active') throw new NamespaceNotFound(namespace.name, `is ${namespace.status}`);
}

/** The registry of namespaces over a storage. */
export function createNamespaceStore(storage: Storage): NamespaceStore {
  const change = <T>(call: RegistryChange, work: (registry: Registry) => T) => storage.writeRegistry(call, work);

  return {
    register: (call, name, id) => change(call, (registry) => register(registry, call, name, id)),
    read: (call, name) => storage.readRegistry(call, (registry) => registry.active(name)),
    list: (call, page) => storage.readRegistry(call, (registry) => registry.list('active', page)),
    orphans: (call, page) => storage.readRegistry(call, (registry) => registry.list('orphaned', page)),
    delete: (call, name) => change(call, (registry) => remove(registry, call, name)),
    recover: (call, id) => change(call, (registry) => recover(registry, call, id)),
    purge: (call, id) => change(call, (registry) => purge(registry, call, id)),
    audit: (call, name, page) =>
      storage.readRegistry(call, (registry) => registry.audit(`$NAMESPACE:${name}`, call.nowMs - AUDIT_LIFE_MS, page)),
  };
}

function register(registry: Registry, call: RegistryChange, name: string, id: string): NamespaceRecord {
  const existing = registry.active(name);
  if (existing !== undefined) return existing;
  const created: NamespaceRecord = { id, name, status: 'active', createdAtMs: call.nowMs };
  return write(registry, call, 'namespace.register', null, created);
}

function remove(registry: Registry, call: RegistryChange, name: string): NamespaceRecord {
  const existing = registry.active(name);
  if (existing === undefined) throw new NamespaceNotFound(name);
  return write(registry, call, 'namespace.delete', existing, { ...existing, status: 'deleted' });
}

function recover(registry: Registry, call: RegistryChange, id: string): NamespaceRecord {
  const orphan = orphaned(registry, id, 'recovered');
  if (orphan.status === 'purging') throw new NamespaceConflict(orphan.name, 'was purged: there is nothing to recover');
  if (registry.active(orphan.name) !== undefined) {
    throw new NamespaceConflict(orphan.name, 'was registered again meanwhile: delete that one first');
  }
  return write(registry, call, 'namespace.recover', orphan, { ...orphan, status: 'active' });
}

/** The record stays as a tombstone: an id is never given away twice. */
function purge(registry: Registry, call: RegistryChange, id: string): number {
  const orphan = orphaned(registry, id, 'purged');
  const removed = registry.clear(id);
  if (orphan.status === 'purging' && removed === 0) return 0;
  write(registry, call, 'namespace.purge', orphan, { ...orphan, status: 'purging' });
  return removed;
}

function orphaned(registry: Registry, id: string, verb: string): NamespaceRecord {
  const namespace = registry.byId(id);
  if (namespace === undefined) throw new NamespaceNotFound(id, 'is the id of no namespace');
  if (namespace.status === 'active') throw new NamespaceConflict(namespace.name, `is active and cannot be ${verb}`);
  return namespace;
}

function write(
  registry: Registry,
  call: RegistryChange,
  action: AuditAction,
  before: NamespaceRecord | null,
  after: NamespaceRecord,
): NamespaceRecord {
  registry.write(after);
  registry.addAudit({
    id: call.auditId,
    atMs: call.nowMs,
    principal: call.principal,
    action,
    subject: `$NAMESPACE:${after.name}`,
    before,
    after,
  });
  return after;
}
