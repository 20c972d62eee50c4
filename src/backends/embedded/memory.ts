import type { Backend, EntityRecord, NamespaceRecord, UsageRecord } from '../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../core/config.js';
import { NamespaceNotFound } from '../../core/errors.js';
import { checkNamespace } from '../../core/identifiers.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import type { UsageCounts, UsageWindow } from '../../core/usage.js';
import type { EpochMs } from '../../core/units.js';
import { type Bucket, isIdle } from './bucket.js';
import { createEmbeddedBackend } from './embedded-backend.js';
import type { Registry, Space, Storage } from './storage.js';
import { UsageLedger } from './usage-ledger.js';
import { fold } from './usage.js';

/** Fewer buckets than this are not worth looking for idle ones. */
const KEPT_BUCKETS = 10_000;

/** How many buckets each new one beyond that looks at, to find those that can be forgotten. */
const SWEPT_PER_NEW_BUCKET = 2;

export interface MemoryOptions {
  /** The namespaces that the store is born with: `default` unless given. */
  readonly namespaces?: readonly string[];
}

/** A store inside this process: no set-up, gone with the process. */
export function memory(options: MemoryOptions = {}): Backend {
  return createEmbeddedBackend(new MemoryStorage(options.namespaces ?? ['default']));
}

class MemoryStorage implements Storage, Registry {
  readonly name = 'memory';
  readonly ephemeral = true;
  readonly #registered = new Map<string, NamespaceRecord>();
  readonly #spaces = new Map<string, MemorySpace>();

  constructor(names: readonly string[]) {
    for (const name of names) {
      checkNamespace(name);
      // Nobody else can see these ids, so that they need not be random.
      this.writeNamespace({ id: name, name, status: 'active', createdAtMs: 0 });
    }
  }

  open(): void {}

  close(): void {}

  transact<T>(namespaceId: string, _timeoutMs: number, work: (space: Space) => T): T {
    const space = this.#spaces.get(namespaceId);
    if (space === undefined) throw new NamespaceNotFound(namespaceId);
    return work(space);
  }

  transactRegistry<T>(work: (registry: Registry) => T): T {
    return work(this);
  }

  readNamespace(name: string): NamespaceRecord | undefined {
    return this.#registered.get(name);
  }

  writeNamespace(namespace: NamespaceRecord): void {
    this.#registered.set(namespace.name, namespace);
    if (!this.#spaces.has(namespace.id)) this.#spaces.set(namespace.id, new MemorySpace());
  }

  namespaces(): readonly NamespaceRecord[] {
    return [...this.#registered.values()];
  }
}

class MemorySpace implements Space {
  readonly #buckets = new TwoKeyMap<Bucket>();
  #sweep = this.#buckets.entries();
  readonly #configs = new Map<string, StoredConfig>();
  readonly #configured = new Map<string, Set<string>>();
  #sequence = 0;
  readonly #entities = new Map<string, EntityRecord>();
  readonly #usage = new UsageLedger();

  readBucket(entityId: string, resource: string): Bucket | undefined {
    return this.#buckets.get(entityId, resource);
  }

  writeBucket(entityId: string, resource: string, bucket: Bucket, nowMs: EpochMs): void {
    const before = this.#buckets.size;
    this.#buckets.set(entityId, resource, bucket);
    if (before >= KEPT_BUCKETS && this.#buckets.size > before) this.#forgetIdle(nowMs);
  }

  *bucketsOf(entityId: string): Generator<readonly [resource: string, bucket: Bucket]> {
    for (const [owner, resource, bucket] of this.#buckets.entries()) if (owner === entityId) yield [resource, bucket];
  }

  /** A hand goes round all buckets, a few steps for each new one, so that no call pays for many and no timer is needed. */
  #forgetIdle(nowMs: EpochMs): void {
    for (let step = 0; step < SWEPT_PER_NEW_BUCKET; step++) {
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = this.#buckets.entries();
        return;
      }
      const [entityId, resource, bucket] = next.value;
      if (!isIdle(bucket, nowMs)) continue;
      fold(this, { entityId, resource }, bucket);
      this.#buckets.delete(entityId, resource);
    }
  }

  readConfig(level: ConfigLevel): StoredConfig | undefined {
    return this.#configs.get(configKey(level));
  }

  writeConfig(level: ConfigLevel, config: StoredConfig): void {
    this.#configs.set(configKey(level), config);
    if (level.kind !== 'entity') return;
    const entities = this.#configured.get(level.resource) ?? new Set();
    this.#configured.set(level.resource, entities);
    if (config.limits === null) entities.delete(level.entityId);
    else entities.add(level.entityId);
  }

  entitiesWithConfig(resource: string): readonly string[] {
    return [...(this.#configured.get(resource) ?? [])].toSorted();
  }

  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  readEntity(id: string): EntityRecord | undefined {
    return this.#entities.get(id);
  }

  writeEntity(entity: EntityRecord): void {
    this.#entities.set(entity.id, entity);
  }

  addUsage(entityId: string, resource: string, hourMs: EpochMs, counts: UsageCounts): void {
    this.#usage.add(entityId, resource, hourMs, counts);
  }

  usageOf(entityId: string, resource: string, window: UsageWindow): readonly UsageRecord[] {
    return this.#usage.of(entityId, resource, window);
  }
}

/** No name contains "#", so that no two levels share a key. */
function configKey(level: ConfigLevel): string {
  switch (level.kind) {
    case 'entity':
      return `entity#${level.entityId}#${level.resource}`;
    case 'entity_default':
      return `entity#${level.entityId}`;
    case 'resource':
      return `resource#${level.resource}`;
    case 'system':
      return 'system';
  }
}
