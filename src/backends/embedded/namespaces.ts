import type { AuditAction, NamespaceRecord, NamespaceStore, RegistryChange } from '../../backend.js';
import { NamespaceNotFound } from '../../core/errors.js';
import { requireOrphan, requireRecoverable } from '../../core/config/namespaces.js';
import { AUDIT_LIFE_MS } from '../../core/usage/usage.js';
import type { Registry, Storage } from './storage.js';

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
  const orphan = requireOrphan(registry.byId(id), id, 'recovered');
  requireRecoverable(orphan, registry.active(orphan.name));
  return write(registry, call, 'namespace.recover', orphan, { ...orphan, status: 'active' });
}

/** The record stays as a tombstone, so that an id is never reused. */
function purge(registry: Registry, call: RegistryChange, id: string): number {
  const orphan = requireOrphan(registry.byId(id), id, 'purged');
  const removed = registry.clear(id);
  if (orphan.status === 'purging' && removed === 0) return 0;
  write(registry, call, 'namespace.purge', orphan, { ...orphan, status: 'purging' });
  return removed;
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
