import type {
  AuditPageRequest,
  AuditRecord,
  Backend,
  Call,
  NamespaceRecord,
  Page,
  PageRequest,
  RegistryCall,
} from '../../backend.js';
import { buildFirstNamespaceId, checkNamespace } from '../../core/identifiers.js';
import { requireActive } from '../../core/config/namespaces.js';
import type { EpochMs } from '../../core/units.js';
import type { Bucket } from './bucket.js';
import { createEmbeddedBackend } from './embedded-backend.js';
import { auditWhere, MemorySpace, withAudit } from './memory-space.js';
import { pageOf } from '../../core/paging.js';
import { EVERYTHING } from './paging.js';
import type { Registry, Space, Storage } from './storage.js';

/** Options of `memory`. */
export interface MemoryOptions {
  /** The namespaces of a new store. Default: `default`. */
  readonly namespaces?: readonly string[];
  /** @internal Below this number of buckets in a namespace, idle ones are kept. */
  readonly keptBuckets?: number;
}

/** A store in this process's memory. It needs no setup and is lost when the process ends. */
export function memory(options: MemoryOptions = {}): Backend {
  return createEmbeddedBackend(new MemoryStorage(options));
}

class MemoryStorage implements Storage {
  readonly name = 'memory';
  readonly ephemeral = true;
  readonly #registry: MemoryRegistry;
  #written = false;

  constructor({ namespaces = ['default'], keptBuckets }: MemoryOptions) {
    this.#registry = new MemoryRegistry(keptBuckets);
    for (const name of namespaces) {
      checkNamespace(name);
      this.#registry.write({ id: buildFirstNamespaceId(name), name, status: 'active', createdAtMs: 0 });
    }
  }

  open(): void {}

  close(): void {}

  read<T>(call: Call, work: (space: Space) => T): T {
    return work(this.#registry.spaceOf(call.namespaceId));
  }

  write<T>(call: Call, work: (space: Space) => T): T {
    if (!this.#written) this.#markCreated(call);
    return work(this.#registry.spaceOf(call.namespaceId));
  }

  residentBucket(namespaceId: string, entityId: string, resource: string): Bucket | undefined {
    return this.#registry.openSpace(namespaceId)?.readBucket(entityId, resource);
  }

  readRegistry<T>(_call: RegistryCall, work: (registry: Registry) => T): T {
    return work(this.#registry);
  }

  writeRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): T {
    if (!this.#written) this.#markCreated(call);
    return work(this.#registry);
  }

  /** A store is created by its first write, as a file is. */
  #markCreated({ nowMs }: RegistryCall): void {
    this.#written = true;
    for (const namespace of this.#registry.list('active', EVERYTHING).items) {
      this.#registry.write({ ...namespace, createdAtMs: nowMs });
    }
  }
}

class MemoryRegistry implements Registry {
  readonly #namespaces = new Map<string, NamespaceRecord>();
  /** The spaces of active namespaces, so that most calls need one lookup. */
  readonly #open = new Map<string, MemorySpace>();
  readonly #spaces = new Map<string, MemorySpace>();
  #audit: AuditRecord[] = [];
  readonly #keptBuckets: number | undefined;

  constructor(keptBuckets: number | undefined) {
    this.#keptBuckets = keptBuckets;
  }

  openSpace(id: string): Space | undefined {
    return this.#open.get(id);
  }

  spaceOf(id: string): Space {
    const open = this.#open.get(id);
    if (open !== undefined) return open;
    requireActive(this.#namespaces.get(id), id);
    const space = this.#spaces.get(id) ?? new MemorySpace(this.#keptBuckets);
    space.home.isOpen = true;
    this.#spaces.set(id, space);
    this.#open.set(id, space);
    return space;
  }

  active(name: string): NamespaceRecord | undefined {
    for (const namespace of this.#namespaces.values()) {
      if (namespace.name === name && namespace.status === 'active') return namespace;
    }
    return undefined;
  }

  byId(id: string): NamespaceRecord | undefined {
    return this.#namespaces.get(id);
  }

  write(namespace: NamespaceRecord): void {
    this.#namespaces.set(namespace.id, namespace);
    const space = this.#open.get(namespace.id);
    if (space === undefined) return;
    // The next call checks whether the namespace is still active.
    space.home.isOpen = false;
    this.#open.delete(namespace.id);
  }

  list(kind: 'active' | 'orphaned', page: PageRequest): Page<NamespaceRecord> {
    const wanted = [...this.#namespaces.values()].filter(({ status }) => (status === 'active') === (kind === 'active'));
    return pageOf(wanted, page, ({ name, id }) => (kind === 'active' ? name : id));
  }

  clear(id: string): number {
    const records = this.#spaces.get(id)?.size ?? 0;
    this.#spaces.delete(id);
    return records;
  }

  addAudit(record: AuditRecord): void {
    this.#audit = withAudit(this.#audit, record);
  }

  audit(subject: string, sinceMs: EpochMs, page: AuditPageRequest): Page<AuditRecord> {
    return structuredClone(pageOf(auditWhere(this.#audit, subject, sinceMs), page, ({ id }) => id));
  }
}
