import type { Backend, Call, ConfigChange, EntityRecord, Page, PageRequest } from '../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../core/config.js';
import { MAX_CHAIN } from '../../core/units.js';
import { EntityExists, ValidationError } from '../../core/errors.js';
import { parsePlainResource } from '../../core/identifiers.js';
import { adjust, consume, extend, peek } from './consume.js';
import type { Space, Storage } from './storage.js';
import { fold } from './usage.js';

/** The port over tables that are at hand: each call is one transaction of its storage. */
export function createEmbeddedBackend(storage: Storage): Backend {
  const transact = <T>(call: Call, work: (space: Space) => T) =>
    storage.transact(call.namespaceId, call.timeoutMs, work);

  return {
    name: storage.name,
    ephemeral: storage.ephemeral,
    open: (timeoutMs) => storage.open(timeoutMs),
    close: () => storage.close(),

    consume: (call, request) => transact(call, (space) => consume(space, request, call.nowMs)),
    adjust: (call, request) => transact(call, (space) => adjust(space, request, call.nowMs)),
    extend: (call, request) => transact(call, (space) => extend(space, request, call.nowMs)),
    peek: (call, levels) => transact(call, (space) => peek(space, levels, call.nowMs)),

    config: {
      readFor: (call, entityId, resource) => transact(call, (space) => readFor(space, entityId, resource)),
      read: (call, level) => transact(call, (space) => space.readConfig(level)),
      write: (call, level, change) => transact(call, (space) => writeConfig(space, level, change)),
      list: (call, resource, page) =>
        transact(call, (space) => pageOf(space.entitiesWithConfig(resource), page, (entityId) => entityId)),
    },

    entities: {
      create: (call, entity) => transact(call, (space) => createEntity(space, entity, call.nowMs)),
      read: (call, id) => transact(call, (space) => space.readEntity(id)),
    },

    namespaces: {
      register: (name, id, nowMs) =>
        storage.transactRegistry((registry) => {
          const registered = registry.readNamespace(name) ?? { id, name, status: 'active', createdAtMs: nowMs };
          registry.writeNamespace(registered);
          return registered;
        }),
      read: (name) => storage.transactRegistry((registry) => registry.readNamespace(name)),
      list: (page) => storage.transactRegistry((registry) => pageOf(registry.namespaces(), page, ({ name }) => name)),
    },

    usage: {
      query: (call, query, page) =>
        transact(call, (space) => {
          const { entityId, resource, window, fromMs, toMs } = query;
          foldOpenHour(space, entityId, resource);
          const records = space.usageOf(entityId, resource, window);
          const wanted = records.filter(({ startMs }) => startMs >= fromMs && startMs < toMs);
          return pageOf(wanted, page, ({ startMs }) => String(startMs).padStart(16, '0'));
        }),
    },

    leases: {
      list: (call, entityId, resource, page) =>
        transact(call, (space) => {
          const holders = space.readBucket(entityId, resource)?.holders ?? new Map();
          return pageOf(
            [...holders].map(([id, holder]) => ({ ...holder, id })),
            page,
            ({ id }) => id,
          );
        }),
    },
  };
}

function readFor(space: Space, entityId: string, resource: string) {
  return {
    levels: {
      entity: space.readConfig({ kind: 'entity', entityId, resource }),
      entityDefault: space.readConfig({ kind: 'entity_default', entityId }),
      resource: space.readConfig({ kind: 'resource', resource }),
      system: space.readConfig({ kind: 'system' }),
    },
    entity: space.readEntity(entityId),
  };
}

function writeConfig(space: Space, level: ConfigLevel, change: ConfigChange): StoredConfig {
  const before = space.readConfig(level);
  const config = {
    limits: change.limits === undefined ? (before?.limits ?? null) : change.limits,
    onUnavailable: change.onUnavailable === undefined ? (before?.onUnavailable ?? null) : change.onUnavailable,
    v: space.nextSequence(),
  };
  space.writeConfig(level, config);
  return config;
}

function createEntity(
  space: Space,
  entity: Omit<EntityRecord, 'createdAtMs' | 'version'>,
  nowMs: number,
): EntityRecord {
  if (space.readEntity(entity.id) !== undefined) throw new EntityExists(entity.id);
  if (entity.parentId !== null) checkParents(space, entity.id, entity.parentId);
  const record = { ...entity, createdAtMs: nowMs, version: 1 };
  space.writeEntity(record);
  return record;
}

/** A parent must exist, and the chain above must end: without a cycle, within the depth that an acquire follows. */
function checkParents(space: Space, id: string, parentId: string): void {
  const chain = [id];
  for (let next: string | null = parentId; next !== null;) {
    if (chain.includes(next)) throw new ValidationError('parentId', 'above the entity, not below it', [...chain, next]);
    if (chain.length >= MAX_CHAIN) {
      throw new ValidationError('parentId', `at the end of at most ${MAX_CHAIN} levels`, [...chain, next]);
    }
    const parent: EntityRecord | undefined = space.readEntity(next);
    if (parent === undefined) throw new ValidationError('parentId', 'the id of an entity that exists', next);
    chain.push(next);
    next = parent.parentId;
  }
}

/** Per-call limits have buckets of their own; their usage belongs to the plain resource. */
function foldOpenHour(space: Space, entityId: string, resource: string): void {
  for (const [keyPart, bucket] of space.bucketsOf(entityId)) {
    if (parsePlainResource(keyPart) === resource) fold(space, { entityId, resource }, bucket);
  }
}

/** One page of items in the order of their keys. */
function pageOf<T>(items: readonly T[], page: PageRequest, keyOf: (item: T) => string): Page<T> {
  const { limit, after } = page;
  const sorted = items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const rest = after === null ? sorted : sorted.filter((item) => keyOf(item) > after);
  const taken = rest.slice(0, limit);
  const last = taken.at(-1);
  return { items: taken, next: rest.length > limit && last !== undefined ? keyOf(last) : null };
}
