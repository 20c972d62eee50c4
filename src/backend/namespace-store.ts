import type { EpochMs } from '../core/units.js';
import type { AuditPageRequest, AuditRecord } from './audit-store.js';
import type { AdminCall, Awaitable, Call, Page, PageRequest } from './call.js';

/** A tenant, as a store keeps it. */
export interface NamespaceRecord {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'deleted' | 'purging';
  readonly createdAtMs: EpochMs;
}

/**
 * The registry. A name belongs to at most one active namespace. A deleted one keeps its data until it is purged, and
 * its id for ever.
 */
export interface NamespaceStore {
  /** Returns the active namespace with that name, or registers one under `id`. */
  register(call: RegistryChange, name: string, id: string): Awaitable<NamespaceRecord>;
  /** The active namespace with that name. */
  read(call: RegistryCall, name: string): Awaitable<NamespaceRecord | undefined>;
  /** The active namespaces. */
  list(call: RegistryCall, page: PageRequest): Awaitable<Page<NamespaceRecord>>;
  /** The namespaces that no name belongs to: deleted, or being purged. */
  orphans(call: RegistryCall, page: PageRequest): Awaitable<Page<NamespaceRecord>>;
  /** Makes the namespace unusable. Its data stays until `purge`. */
  delete(call: RegistryChange, name: string): Awaitable<NamespaceRecord>;
  /** Undoes `delete`. Rejects if the name was registered again meanwhile. */
  recover(call: RegistryChange, id: string): Awaitable<NamespaceRecord>;
  /**
   * Removes all data of a deleted namespace and returns how many records were removed. May take long: `timeoutMs` applies
   * to each request that the store makes, not to the whole purge.
   */
  purge(call: RegistryChange, id: string): Awaitable<number>;
  /** The audit records of the registry. */
  audit(call: RegistryCall, name: string, page: AuditPageRequest): Awaitable<Page<AuditRecord>>;
}

/** The fields of a call that belongs to no namespace. */
export type RegistryCall = Omit<Call, 'namespaceId'>;
/** A call that changes the registry of namespaces. The same write adds one audit record. */
export type RegistryChange = Omit<AdminCall, 'namespaceId'>;
