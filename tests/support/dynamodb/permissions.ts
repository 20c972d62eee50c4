import { vi } from 'vitest';
import { deadlineIn } from '../../../src/machine-time.js';
import { encodeUsage } from '../../../src/backends/dynamodb/table/records.js';
import { Limit } from '../../../src/core/limit.js';
import { NO_USAGE, windowStart } from '../../../src/core/usage/usage.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { RecordedRequest } from '../../../src/testing/dynamodb/index.js';
import { shapeOf } from './shard/shards.js';
import type { DynamoWorld, Space } from './world.js';

export const LIMITS = [Limit.perDay('rpd', 1_000), Limit.concurrent('slots', 40)];
const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const ASK = { ...BUCKET, consume: { rpd: 1, slots: 1 } };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The IAM permissions that a request needs. For a transaction these are the permissions of its parts. */
export function permissionsOf({ operation, body }: RecordedRequest): readonly string[] {
  if (operation === 'TransactWriteItems') {
    const parts = body['TransactItems'] as readonly Readonly<Record<string, unknown>>[];
    return parts.flatMap((part) => Object.keys(part).map((kind) => PART_PERMISSIONS[kind] ?? kind));
  }
  const index = body['IndexName'];
  return [typeof index === 'string' ? `${operation} (${index})` : operation];
}

const PART_PERMISSIONS: Readonly<Record<string, string>> = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
};

/** Stores the usage record of one hour. */
export async function putUsage({ table }: DynamoWorld, { ns, clock }: Space): Promise<void> {
  const startMs = windowStart('hourly', clock.now());
  const Item = encodeUsage(ns, { ...BUCKET, window: 'hourly', startMs, ...NO_USAGE });
  await table.transport.send('PutItem', { TableName: table.name, Item }, deadlineIn(HOUR_MS));
}

export interface Stage {
  readonly world: DynamoWorld;
  readonly space: Space;
  /** A limiter that has opened the store, with an entity `user-1` below `proj-1` and a bucket in use. */
  readonly limiter: RateLimiter;
}

/** The operations, in the words of the page on DynamoDB. Each runs on a separate stage. */
export const OPERATIONS: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  '`open`, `ping`': async ({ space }) => (await space.open()).ping(),
  '`acquire`, `tryAcquire`, `run`, and all that a lease can do': useLeases,
  'the same, once a bucket is busy enough to split': useBusyBucket,
  '`charge`, `credit`': async ({ limiter }) => {
    await limiter.charge({ ...BUCKET, amounts: { rpd: 1 } });
    await limiter.charge({ ...BUCKET, amounts: { rpd: 1 }, id: 'a' });
    await limiter.credit({ ...BUCKET, amounts: { rpd: 1 }, id: 'b' });
    await limiter.charge({ entityId: 'charged', resource: 'gpt-4', amounts: { rpd: 1 }, id: 'c' });
  },
  '`status`, `available`, `timeUntilAvailable`, `peek`': async ({ limiter }) => {
    await limiter.status(BUCKET);
    await limiter.timeUntilAvailable({ ...BUCKET, consume: { rpd: 1 } });
  },
  '`config.get`': async ({ limiter }) => limiter.config.get(BUCKET),
  '`config.resolve`': async ({ limiter }) => limiter.config.resolve('user-2', 'gpt-4'),
  '`config.set*`, `config.delete`': async ({ limiter }) => {
    await limiter.config.setSystem({ limits: LIMITS });
    await limiter.config.setEntity('user-1', 'gpt-4', { limits: LIMITS });
    await limiter.config.delete(BUCKET);
  },
  '`config.list`': async ({ limiter }) => limiter.config.list({ resource: 'gpt-4' }),
  '`config.all`': async ({ limiter }) => limiter.config.all(),
  '`manifest.plan`, `manifest.export`': async ({ limiter, space }) => {
    await limiter.manifest.plan({ namespace: space.namespace });
    await limiter.manifest.export();
  },
  '`manifest.apply`': applyTwice,
  '`entities.get`': async ({ limiter }) => limiter.entities.get('user-1'),
  '`entities.create`, `entities.update`': changeEntities,
  '`entities.delete`': async ({ limiter }) => limiter.entities.delete('user-1'),
  '`entities.list`': async ({ limiter }) => limiter.entities.list(),
  '`entities.children`': async ({ limiter }) => limiter.entities.children('proj-1'),
  '`buckets.get`': async ({ limiter }) => limiter.buckets.get(BUCKET),
  '`buckets.list({ entityId })`': async ({ limiter }) => limiter.buckets.list({ entityId: 'user-1' }),
  '`buckets.list({ resource })`, `resources.capacity`': async ({ limiter }) => {
    await limiter.buckets.list({ resource: 'gpt-4' });
    await limiter.resources.capacity('gpt-4');
  },
  '`buckets.reset`': async ({ limiter }) => limiter.buckets.reset(BUCKET),
  '`leases.list({ entityId, resource })`, `leases.list({ entityId })`': async ({ limiter }) => {
    await limiter.leases.list(BUCKET);
    await limiter.leases.list({ entityId: 'user-1' });
  },
  '`leases.list()`': async ({ limiter }) => limiter.leases.list(),
  '`leases.resume`, and all that the lease can do then': resumeLease,
  '`leases.release(id)`': async ({ limiter, world }) => {
    const { id } = await limiter.acquire({ ...ASK, leaseTtlMs: 60_000 });
    world.proxy.requests.clear();
    await limiter.leases.release(id);
  },
  '`usage.query`, `usage.summary` of an entity': async ({ limiter, space }) =>
    limiter.usage.query(windowOf(space, BUCKET)),
  '`usage.query`, `usage.summary` of a resource': async ({ limiter, space }) =>
    limiter.usage.query(windowOf(space, { resource: 'gpt-4' })),
  '`audit.list({ entityId })`': async ({ limiter }) => limiter.audit.list({ entityId: 'user-1' }),
  '`audit.list()`': async ({ limiter }) => limiter.audit.list(),
  '`namespaces.register`': async ({ limiter, space }) => limiter.namespaces.register(`new-${space.ns}`),
  '`namespaces.list`, `namespaces.orphans`': async ({ limiter }) => limiter.namespaces.list(),
  '`namespaces.delete`': async ({ limiter, space }) => limiter.namespaces.delete(space.namespace),
  '`namespaces.recover`': async ({ limiter, space, world }) => {
    await limiter.namespaces.delete(space.namespace);
    world.proxy.requests.clear();
    await limiter.namespaces.recover(space.ns);
  },
  '`namespaces.purge`': async ({ limiter, space, world }) => {
    await limiter.namespaces.delete(space.namespace);
    world.proxy.requests.clear();
    await limiter.namespaces.purge(space.ns);
  },
};

function windowOf({ clock }: Space, of: { readonly entityId?: string; readonly resource: string }) {
  const now = clock.now();
  return { ...of, window: 'hourly' as const, from: new Date(now - DAY_MS), to: new Date(now + DAY_MS) };
}

/** Every path of an acquire and of its lease, on both levels. */
async function useLeases({ space }: Stage): Promise<void> {
  // New processes: one detects the bucket by the refused creation, the other takes from both levels in a transaction.
  for (const atomic of [false, true]) {
    const limiter = await space.open({ limits: LIMITS });
    const lease = await limiter.acquire({ ...ASK, atomic, leaseTtlMs: 60_000 });
    await lease.settle({ rpd: 3 });
    await lease.extend(90_000);
    await lease.commit();
    await (await limiter.acquire({ ...ASK, entityId: `new-${String(atomic)}`, atomic })).rollback();
  }
}

async function resumeLease({ space, world }: Stage): Promise<void> {
  const limiter = await space.open({ limits: LIMITS, leaseSecrets: ['a secret of this test'] });
  const token = await (await limiter.acquire({ ...ASK, portable: true })).token();
  world.proxy.requests.clear();
  const lease = await limiter.leases.resume(token);
  await lease.settle({ rpd: 3 });
  await lease.extend(90_000);
  await lease.commit();
}

const SENSITIVE = { paceAbove: 5, splitAbove: 10 };
const WRITES_PER_SEC = 20;

/** Splits a busy bucket, and merges it after more than an hour without writes. */
async function useBusyBucket({ space }: Stage): Promise<void> {
  const ask = { entityId: 'busy', resource: 'gpt-4', consume: { rpd: 1 } };
  const shape = async () => shapeOf(await space.shards('busy', 'gpt-4'));
  const busy = await space.open({ limits: LIMITS }, { pressure: SENSITIVE });
  for (let write = 0; write <= 2 * WRITES_PER_SEC; write++) {
    await busy.acquire(ask);
    space.clock.set(space.clock.now() + 1_000 / WRITES_PER_SEC);
  }
  await vi.waitUntil(async () => (await shape()) === '0/2 1/2');
  space.clock.set(space.clock.now() + 2 * HOUR_MS);
  await (await space.open({ limits: LIMITS })).acquire(ask);
  await vi.waitUntil(async () => (await shape()) === '0/1');
}

/** Creates an entity and moves another one: both check every ancestor of the new parent. */
async function changeEntities({ limiter }: Stage): Promise<void> {
  await limiter.entities.create({ id: 'org' });
  await limiter.entities.create({ id: 'team', parentId: 'org' });
  await limiter.entities.update('proj-1', { parentId: 'team' });
}

/** Creates entities, moves one below two others, deletes all, and adopts limits that already have the wanted value. */
async function applyTwice({ limiter, space: { namespace } }: Stage): Promise<void> {
  await limiter.config.setSystem({ limits: [Limit.perDay('rpd', 7)] });
  const system = { limits: ['rpd:7/day'] };
  const entities = { top: {}, between: { parent: 'top' } };
  await limiter.manifest.apply({ namespace, system, entities: { ...entities, below: {} } });
  await limiter.manifest.apply({ namespace, system, entities: { ...entities, below: { parent: 'between' } } });
  await limiter.manifest.apply({ namespace });
}
