import { USAGE_WINDOWS as WINDOWS, windowStart } from '../../../src/core/usage/usage.js';
import type { ConfigLevelRef } from '../../../src/limiter/api/config-api.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import {
  call,
  chance,
  ENTITIES,
  NAMESPACES,
  type Operation,
  parse,
  RESOURCES,
  someEntity,
  someResource,
  someRules,
  somewhere,
} from './random-acquires.js';
import { pages } from './world.js';

const HOUR_MS = 3_600_000;
const USUAL = { resource: 'gpt-4' };

function someLevel(random: Random): ConfigLevelRef {
  const entityId = someEntity(random);
  const resource = someResource(random);
  return random.pick<ConfigLevelRef>(['system', { resource }, { entityId }, { entityId, resource }]);
}

export function configure(random: Random): Operation {
  const level = someLevel(random);
  const rules = someRules(random);
  const onUnavailable = random.pick(['block', 'allow', 'local'] as const);
  const keepsLimits = chance(random, 10);
  const policy = level === 'system' && chance(random, 70) ? { onUnavailable } : {};
  const title = `configure ${JSON.stringify(level)} ${keepsLimits ? '' : rules.join(' ')} ${JSON.stringify(policy)}`;
  return call(title, somewhere(random), async ({ config }) => {
    const limits = parse(rules);
    const change = { ...policy, ...(keepsLimits ? {} : { limits }) };
    if (level === 'system') await config.setSystem(change);
    else if (!('entityId' in level)) await config.setResource(level.resource, change);
    else if (level.resource === undefined) await config.setEntityDefault(level.entityId, change);
    else await config.setEntity(level.entityId, level.resource, change);
    // The store must not keep the caller's array.
    limits.length = 0;
  });
}

export function unconfigure(random: Random): Operation {
  const level = someLevel(random);
  return call(`delete config ${JSON.stringify(level)}`, somewhere(random), async ({ config }) => config.delete(level));
}

export function readConfig(random: Random): Operation {
  const level = someLevel(random);
  const [entityId, resource] = [someEntity(random), someResource(random)];
  const limit = random.whole(1, 4);
  return random.pick([
    call(`get config ${JSON.stringify(level)}`, somewhere(random), async ({ config }) => config.get(level)),
    call(`resolve ${entityId} ${resource}`, somewhere(random), async ({ config }) => {
      const { limits, ...rest } = await config.resolve(entityId, resource);
      return { ...rest, limits: [...limits] };
    }),
    call(`list configs of ${resource} by ${limit}`, somewhere(random), async ({ config }) =>
      pages((after) => config.list({ resource, limit, ...after })),
    ),
  ]);
}

export function changeEntity(random: Random): Operation {
  const id = random.pick(ENTITIES);
  const parentId = chance(random, 60)
    ? random.pick(['proj', 'proj', 'org', 'org', 'user-1', 'missing', 'a'])
    : undefined;
  const fields = {
    ...(chance(random, 50) ? { name: random.pick(['One', '', 'Zoë 😀 "x"', 'tab\tline\n']) } : {}),
    ...(parentId === undefined ? {} : { parentId }),
    ...(chance(random, 60) ? { cascade: chance(random, 70) } : {}),
  };
  const notes = chance(random, 50) ? [random.whole(0, 9), null, 'é', { deep: [{ er: 1.5 }] }, 1e300] : undefined;
  const metadata = () =>
    notes === undefined ? {} : { metadata: { notes: structuredClone(notes), constructor: 'x', ['__proto__']: 1 } };
  const version = chance(random, 40) ? { version: random.whole(1, 3) } : {};
  const nulls = random.pick([{}, { name: null }, { parentId: null }]);
  const given = JSON.stringify({ ...fields, notes });
  const update = { ...fields, ...nulls, ...version };
  return random.pick([
    call(`create entity ${id} ${given}`, somewhere(random), async ({ entities }) => {
      const more = metadata();
      const created = await entities.create({ id, ...fields, ...more });
      scribble(more);
      return created;
    }),
    call(`update entity ${id} ${JSON.stringify(update)} ${given}`, somewhere(random), async ({ entities }) =>
      entities.update(id, { ...update, ...metadata() }),
    ),
    call(`delete entity ${id}`, somewhere(random), async ({ entities }) => entities.delete(id)),
  ]);
}

export function readEntities(random: Random): Operation {
  const id = someEntity(random);
  const limit = random.whole(1, 5);
  return random.pick([
    call(`get entity ${id}`, somewhere(random), async ({ entities }) => entities.get(id)),
    call(`list entities by ${limit}`, somewhere(random), async ({ entities }) =>
      pages((after) => entities.list({ limit, ...after })),
    ),
    call(`children of ${id} by ${limit}`, somewhere(random), async ({ entities }) =>
      pages((after) => entities.children(id, { limit, ...after })),
    ),
  ]);
}

/** Mostly creates namespaces, so that other calls find some. */
export function changeNamespace(random: Random): Operation {
  const name = random.pick(NAMESPACES.slice(1));
  const verb = random.pick(['register', 'register', 'delete', 'recover', 'recover', 'purge'] as const);
  const byId = chance(random, 50);
  const title = `${verb} namespace ${name}${byId ? ' by its id' : ''}`;
  return call(title, { ...somewhere(random), namespace: 'default' }, async ({ namespaces }) => {
    const orphans = (await namespaces.orphans()).items.filter((orphan) => orphan.name === name);
    const which = byId ? (orphans.at(-1)?.id ?? 'AAAAAAAAAAA') : name;
    if (verb === 'register' || verb === 'delete') return namespaces[verb](name);
    if (verb === 'recover') return namespaces.recover(which);
    const { removed } = await namespaces.purge(which);
    // The number of removed records depends on what the store had cleaned up before.
    return { removed: removed >= 0 };
  });
}

export function readNamespaces(random: Random): Operation {
  const name = random.pick([...NAMESPACES, 'nowhere']);
  const limit = random.whole(1, 3);
  const where = somewhere(random);
  return random.pick([
    call(`get namespace ${name}`, where, async ({ namespaces }) => namespaces.get(name)),
    call('list namespaces', where, async ({ namespaces }) => pages((after) => namespaces.list({ limit, ...after }))),
    call('list orphans', where, async ({ namespaces }) => pages((after) => namespaces.orphans({ limit, ...after }))),
    call(`work in ${name}`, where, async (limiter) =>
      (await limiter.in(name)).available({ entityId: 'a', resource: 'gpt-4' }),
    ),
    call('ping', where, async (limiter) => limiter.ping()),
  ]);
}

export function readUsage(random: Random, nowMs: number): Operation {
  const resource = someResource(random);
  /** Often exactly the start of a window. */
  const about = (hours: number): Date => {
    const atMs = nowMs - hours * HOUR_MS;
    return new Date(chance(random, 50) ? atMs : windowStart(random.pick(WINDOWS), atMs));
  };
  const range = {
    resource,
    window: random.pick(WINDOWS),
    ...(chance(random, 60) ? { entityId: someEntity(random) } : {}),
    ...(chance(random, 70) ? { from: about(random.whole(0, 2_000)) } : {}),
    ...(chance(random, 50) ? { to: about(random.whole(-50, 500)) } : {}),
  };
  const limit = random.whole(1, 40);
  return random.pick([
    call(`usage ${JSON.stringify(range)} by ${limit}`, somewhere(random), async ({ usage }) =>
      pages((after) => usage.query({ ...structuredClone(range), limit, ...after })),
    ),
    call(`usage summary ${JSON.stringify(range)}`, somewhere(random), async ({ usage }) =>
      usage.summary(structuredClone(range)),
    ),
  ]);
}

export function readBuckets(random: Random): Operation {
  const key = { entityId: someEntity(random), resource: someResource(random) };
  const { entityId, resource } = key;
  const limit = random.whole(1, 4);
  return random.pick([
    call(`buckets of ${entityId}`, somewhere(random), async ({ buckets }) =>
      pages((after) => buckets.list({ entityId, limit, ...after })),
    ),
    call(`buckets of resource ${resource}`, somewhere(random), async ({ buckets }) =>
      pages((after) => buckets.list({ resource, limit, ...after })),
    ),
    call(`bucket ${JSON.stringify(key)}`, somewhere(random), async ({ buckets }) => buckets.get(key)),
    call(`capacity of ${resource}`, somewhere(random), async ({ resources }) => resources.capacity(resource)),
    call(`leases ${JSON.stringify(key)}`, somewhere(random), async ({ leases }) =>
      pages((after) => leases.list({ ...key, limit, ...after })),
    ),
  ]);
}

export function resetBucket(random: Random): Operation {
  const key = { entityId: someEntity(random), resource: someResource(random) };
  return call(`reset ${JSON.stringify(key)}`, somewhere(random), async ({ buckets }) => buckets.reset(key));
}

/** Short pauses, so that most of the history is not paused. */
export function changePause(random: Random): Operation {
  const entityId = someEntity(random);
  const target = chance(random, 70) ? { entityId, resource: someResource(random) } : { entityId };
  const reason = random.pick(['vendor', 'leaked']);
  const forMs = random.pick([1, 900, 5_000, 60_000, 'forever'] as const);
  const where = somewhere(random);
  return random.pick([
    call(`pause ${JSON.stringify(target)} for ${forMs}`, where, async (limiter) =>
      limiter.pause({ ...target, forMs, reason }),
    ),
    call(`resume ${JSON.stringify(target)}`, where, async (limiter) => limiter.resume(target)),
    call(`pause and resume ${JSON.stringify(target)}`, where, async (limiter) => [
      await limiter.pause({ ...target, forMs, reason }),
      await limiter.timeUntilAvailable({ ...USUAL, ...target, consume: { rpm: 1 } }).catch(String),
      await limiter.resume(target),
    ]),
  ]);
}

export function readAudit(random: Random): Operation {
  const query = random.pick([
    {},
    { entityId: someEntity(random) },
    { resource: someResource(random) },
    { system: true },
    { namespace: random.pick([...NAMESPACES, 'nowhere']) },
  ]);
  const limit = random.whole(5, 100);
  return call(`audit ${JSON.stringify(query)} by ${limit}`, somewhere(random), async ({ audit }) =>
    pages((after) => audit.list({ ...query, limit, ...after })),
  );
}

/** Everything that can be read of one namespace. */
export async function visibleState(limiter: RateLimiter): Promise<Record<string, unknown>> {
  const { audit, buckets, config, entities, leases, namespaces, resources, usage } = limiter;
  const state: Record<string, unknown> = {
    namespaces: await pages((after) => namespaces.list(after)),
    orphans: await pages((after) => namespaces.orphans(after)),
    audit: await pages((after) => audit.list({ limit: 1_000, ...after })),
    entities: await pages((after) => entities.list(after)),
    system: await config.get('system'),
  };
  for (const namespace of NAMESPACES)
    state[`audit of ${namespace}`] = await pages((after) => audit.list({ namespace, ...after }));
  for (const resource of RESOURCES) {
    const windows = WINDOWS.map(async (window) => usage.summary({ resource, window }));
    state[`resource ${resource}`] = [
      await config.get({ resource }),
      await pages((after) => config.list({ resource, ...after })),
      await pages((after) => buckets.list({ resource, ...after })),
      await resources.capacity(resource),
      await pages((after) => usage.query({ resource, window: 'daily', limit: 1_000, ...after })),
      await Promise.all(windows),
    ];
  }
  for (const entityId of ENTITIES) {
    state[`entity ${entityId}`] = [await config.get({ entityId }), await entities.children(entityId)];
    for (const resource of RESOURCES) {
      const key = { entityId, resource };
      state[`${entityId} ${resource}`] = [
        await config.get(key),
        await config.resolve(entityId, resource),
        await leases.list(key),
        await limiter.status(key).catch((error: unknown) => error),
      ];
    }
  }
  return state;
}

/** Changes an answer like a caller may. The store must not be affected. */
export function scribble(answer: unknown): void {
  if (typeof answer !== 'object' || answer === null || Object.isFrozen(answer)) return;
  if (answer instanceof Date) answer.setTime(0);
  else if (Array.isArray(answer)) {
    for (const item of answer as unknown[]) scribble(item);
    answer.push('scribbled');
  } else if (Object.getPrototypeOf(answer) === Object.prototype) {
    for (const item of Object.values(answer)) scribble(item);
    Object.assign(answer, { scribbled: true });
  }
}
