import { NamespaceConflict, NamespaceNotFound } from '../errors.js';

interface Namespace {
  readonly name: string;
  readonly status: 'active' | 'deleted' | 'purging';
}

/** Refuses a namespace that is missing, deleted or being purged. */
export function requireActive(namespace: Namespace | undefined, id: string): void {
  if (namespace === undefined) throw new NamespaceNotFound(id);
  if (namespace.status !== 'active') throw new NamespaceNotFound(namespace.name, namespace.status);
}

/** Refuses a namespace that is missing or active. */
export function requireOrphan<T extends Namespace>(
  namespace: T | undefined,
  id: string,
  verb: 'recovered' | 'purged',
): T {
  if (namespace === undefined) throw new NamespaceNotFound(id, 'unknown-id');
  if (namespace.status === 'active') throw new NamespaceConflict(namespace.name, `is active and cannot be ${verb}`);
  return namespace;
}

/** Refuses to recover a purged namespace, or one whose name now belongs to another namespace (`holder`). */
export function requireRecoverable(orphan: Namespace, holder: Namespace | undefined): void {
  if (orphan.status === 'purging') throw new NamespaceConflict(orphan.name, 'was purged: there is nothing to recover');
  if (holder !== undefined) {
    throw new NamespaceConflict(orphan.name, 'was registered again meanwhile: delete that one first');
  }
}
