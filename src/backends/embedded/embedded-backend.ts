import type { AdminCall, Awaitable, Backend, Call } from '../../backend.js';
import { AUDIT_LIFE_MS } from '../../core/usage/usage.js';
import {
  createEntity,
  deleteEntity,
  describeBucket,
  marked,
  pauseBucket,
  pauseEntity,
  readFor,
  resetBucket,
  updateEntity,
  writeConfig,
} from './administration.js';
import type { Bucket } from './bucket.js';
import { adjust, charge, consume, extend, operate, peek } from './consume.js';
import { createLeaseStore } from './leases.js';
import { createNamespaceStore } from './namespaces.js';
import type { OwnedBucket, Space, Storage } from './storage.js';
import { takeResident } from './take-resident.js';
import { queryUsage } from './usage.js';

/** The backend port over synchronous tables: each call is one transaction of its storage. */
export function createEmbeddedBackend(storage: Storage): Backend {
  const read = <T>(call: Call, work: (space: Space) => T): Awaitable<T> => storage.read(call, work);
  const write = <T>(call: Call, work: (space: Space) => T): Awaitable<T> => storage.write(call, work);
  const administer = <T>(call: AdminCall, work: (space: Space) => T): Awaitable<T> =>
    write(call, (space) => marked(space, call.managed, () => work(space)));
  const consumeAll: Backend['consume'] = (call, request) => write(call, (space) => consume(space, request, call.nowMs));

  return {
    name: storage.name,
    ephemeral: storage.ephemeral,
    open: (timeoutMs) => storage.open(timeoutMs),
    close: () => storage.close(),
    ...(storage.storeTimeMs === undefined ? {} : { storeTimeMs: () => storage.storeTimeMs?.() ?? null }),

    consume: consumeAll,
    adjust: (call, request) => write(call, (space) => adjust(space, request, call.nowMs)),
    charge: (call, request) => write(call, (space) => charge(space, request, call.nowMs)),
    operate: (call, request) => write(call, (space) => operate(space, request, call.nowMs)),
    extend: (call, request) => write(call, (space) => extend(space, request, call.nowMs)),
    peek: (call, levels) => read(call, (space) => peek(space, levels, call.nowMs)),
    ...residentBuckets(storage, consumeAll),

    config: {
      readFor: (call, entityId, resource) => read(call, (space) => readFor(space, entityId, resource)),
      read: (call, level) => read(call, (space) => space.readConfig(level)),
      readMany: (call, levels) => read(call, (space) => levels.map((level) => space.readConfig(level))),
      write: (call, level, change) => administer(call, (space) => writeConfig(space, call, level, change)),
      list: (call, resource, page) => read(call, (space) => space.entitiesWithConfig(resource, page)),
      all: (call, page) => read(call, (space) => space.configs(page)),
    },

    entities: {
      create: (call, entity) => administer(call, (space) => createEntity(space, call, entity)),
      read: (call, id) => read(call, (space) => space.readEntity(id)),
      readMany: (call, ids) => read(call, (space) => ids.map((id) => space.readEntity(id))),
      update: (call, id, change, seen) => administer(call, (space) => updateEntity(space, call, id, change, seen)),
      delete: (call, id, seen) => administer(call, (space) => deleteEntity(space, call, id, seen ?? null)),
      pause: (call, id, pause) => administer(call, (space) => pauseEntity(space, call, id, pause)),
      list: (call, page) => read(call, (space) => space.entities(null, page)),
      children: (call, parentId, page) => read(call, (space) => space.entities(parentId, page)),
    },

    managed: {
      list: (call, page) => read(call, (space) => space.marks(page)),
      read: (call, key) => read(call, (space) => space.readMark(key)),
      mark: (call, mark) => write(call, (space) => marked(space, mark, () => {})),
    },

    namespaces: createNamespaceStore(storage),

    audit: {
      list: (call, subject, page) => read(call, (space) => space.audit(subject, call.nowMs - AUDIT_LIFE_MS, page)),
    },

    usage: {
      query: (call, query, page) => read(call, (space) => queryUsage(space, query, page, call.nowMs)),
    },

    buckets: {
      read: (call, entityId, resource) =>
        read(call, (space) => {
          const bucket = space.readBucket(entityId, resource);
          return bucket === undefined ? undefined : describeBucket({ entityId, resource, bucket }, call.nowMs);
        }),
      listOfEntity: (call, entityId, page) =>
        read(call, (space) => described(space.bucketsOfEntity(entityId, page), call.nowMs)),
      listOfResource: (call, resource, page) =>
        read(call, (space) => described(space.bucketsOfResource(resource, page), call.nowMs)),
      reset: (call, entityId, resource) => write(call, (space) => resetBucket(space, call, entityId, resource)),
      pause: (call, bucket, pause) => write(call, (space) => pauseBucket(space, call, bucket, pause)),
    },

    leases: createLeaseStore(storage),
  };
}

function residentBuckets(storage: Storage, consumeAll: Backend['consume']): Pick<Backend, 'resident'> {
  if (storage.residentBucket === undefined) return {};
  return {
    resident: {
      consume: consumeAll,
      find: (namespaceId, entityId, resource) => storage.residentBucket?.(namespaceId, entityId, resource),
      take: (bucket, version, asks, nowMs) => takeResident(bucket as Bucket, version, asks, nowMs),
    },
  };
}

function described(
  { items, next }: { readonly items: readonly OwnedBucket[]; readonly next: string | null },
  nowMs: number,
) {
  return { items: items.map((owned) => describeBucket(owned, nowMs)), next };
}
