import { expect, test } from 'vitest';
import { memory } from '../../backends/embedded/memory.js';
import { marksOf, objectsOf } from '../../../tests/support/models/logical-state.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { outage } from '../../testing/outage.js';
import type { ManifestData } from '../../core/manifest/manifest.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../rate-limiter.js';

const MANIFEST: ManifestData = {
  namespace: 'default',
  system: { onUnavailable: 'block', limits: ['rpm:100/min'] },
  resources: { 'gpt-4': { limits: ['tpm:10000/min:50000', 'slots:20/concurrent'] } },
  entities: {
    'user-1': {
      parent: 'proj-1',
      cascade: true,
      default: { limits: ['rpm:60/min'] },
      resources: { 'gpt-4': { limits: ['rpm:600/min'] } },
    },
    'proj-1': { name: 'Production' },
  },
};
const CHANGES = 6;
const NOTHING = { changes: [], drift: [], unchanged: CHANGES };

async function openStore() {
  const store = outage(memory());
  const limiter = await RateLimiter.open(store.backend, { principal: 'operator' });
  return { store, limiter };
}

test('applying a manifest makes each change, reports it, and leaves no changes to plan', async () => {
  const { limiter } = await openStore();
  const heard: string[] = [];
  const done = await limiter.manifest.apply(MANIFEST, {
    onProgress: ({ change, done: count, total }) => heard.push(`${count}/${total} ${change.target.kind}`),
  });
  expect(heard).toEqual(['1/6 record', '2/6 record', '3/6 system', '4/6 resource', '5/6 entity_default', '6/6 entity']);
  expect(done.changes).toHaveLength(CHANGES);
  expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
  expect(await limiter.config.resolve('user-1', 'gpt-4')).toMatchObject({ configSource: 'entity' });
});

test('the process that applies a manifest sees the changes at once', async () => {
  const { limiter } = await openStore();
  const ask = { entityId: 'user-1', resource: 'other', consume: { rpm: 1 } };
  await expect(limiter.acquire(ask)).rejects.toMatchObject({ code: 'limits.missing' });
  await limiter.manifest.apply(MANIFEST);
  const { statuses } = await limiter.acquire(ask).then(() => limiter.tryAcquire(ask));
  expect(statuses.map(({ entityId }) => entityId)).toEqual(['user-1', 'proj-1']);
});

test('applying a manifest adds one audit record per change, and none when it is applied again', async () => {
  const { limiter } = await openStore();
  await limiter.manifest.apply(MANIFEST);
  await limiter.manifest.apply(MANIFEST);
  const { items } = await limiter.audit.list();
  expect(items.map(({ action, principal }) => `${principal} ${action}`)).toEqual([
    'operator entity.create',
    'operator entity.create',
    ...Array.from({ length: 4 }, () => 'operator config.set'),
  ]);
});

test('applying a manifest reports a change by hand as drift and reverts it', async () => {
  const { limiter } = await openStore();
  await limiter.manifest.apply(MANIFEST);
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 7)] });
  await limiter.config.delete({ resource: 'gpt-4' });
  const { changes, drift, unchanged } = await limiter.manifest.plan(MANIFEST);
  expect(changes.map(({ action, target }) => `${action} ${target.kind}`)).toEqual(['update system', 'create resource']);
  expect(drift).toEqual([
    { target: { kind: 'system' }, applied: { limits: ['rpm:100/min'] }, live: { limits: ['rpm:7/min'] } },
    { target: { kind: 'resource', resource: 'gpt-4' }, applied: MANIFEST.resources!['gpt-4'], live: null },
  ]);
  expect(unchanged).toBe(CHANGES - 2);
  await limiter.manifest.apply(MANIFEST);
  expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
});

test('applying a manifest removes what the file no longer names, and nothing else', async () => {
  const { limiter, store } = await openStore();
  await limiter.config.setEntityDefault('other', { limits: [Limit.perMinute('rpm', 1)] });
  await limiter.entities.create({ id: 'other', metadata: { by: 'hand' } });
  const before = await objectsOf(store.backend);
  await limiter.manifest.apply(MANIFEST);
  await limiter.manifest.apply({ namespace: 'default' });
  expect(await objectsOf(store.backend)).toEqual(before);
  expect(await marksOf(store.backend)).toEqual(new Map());
});

test('applying a manifest reports what it did, not what it had planned before another process changed the store', async () => {
  const { limiter } = await openStore();
  const heard: string[] = [];
  const { changes, unchanged } = await limiter.manifest.apply(
    { namespace: 'default', entities: { 'user-1': { name: 'mine' }, 'user-2': { name: 'same' } } },
    {
      confirm: async () => {
        await limiter.entities.create({ id: 'user-1', name: 'theirs' });
        await limiter.entities.create({ id: 'user-2', name: 'same' });
      },
      onProgress: ({ change: { action }, done, total }) => heard.push(`${action} ${done}/${total}`),
    },
  );
  const target = { kind: 'record', entityId: 'user-1' };
  expect(changes).toEqual([{ action: 'update', target, before: { name: 'theirs' }, after: { name: 'mine' } }]);
  expect(unchanged).toBe(1);
  expect(heard).toEqual(['update 1/2', 'create 2/2']);
});

test('applying a manifest writes nothing before it is confirmed', async () => {
  const { limiter, store } = await openStore();
  const seen: number[] = [];
  const refusal = new Error('no');
  const confirm = ({ changes }: { readonly changes: readonly unknown[] }): void => {
    seen.push(changes.length);
    throw refusal;
  };
  await expect(limiter.manifest.apply(MANIFEST, { confirm })).rejects.toBe(refusal);
  expect(seen).toEqual([CHANGES]);
  expect(await objectsOf(store.backend)).toEqual(new Map());
});

test('a manifest of another namespace is refused, and an unknown namespace is not created', async () => {
  const { limiter } = await openStore();
  const other = { ...MANIFEST, namespace: 'acme' };
  const message = 'Expected `namespace` to be default, the namespace that is open, got "acme"';
  await expect(limiter.manifest.apply(other)).rejects.toThrow(message);
  await expect(limiter.in('acme')).rejects.toMatchObject({ code: 'namespace.missing' });
  expect((await limiter.namespaces.list()).items).toHaveLength(1);
});

test.each([null, 7, {}, { namespace: 'default', x: 1 }])(
  'the manifest %j is refused without a request to the store',
  async (data) => {
    const { limiter, store } = await openStore();
    const before = store.calls.length;
    for (const verb of ['plan', 'apply'] as const) {
      await expect(limiter.manifest[verb](data as never)).rejects.toMatchObject({ code: 'input.invalid' });
    }
    expect(store.calls.slice(before)).toEqual([]);
  },
);

test('a change that fails stops the apply, reports the progress, and is not marked', async () => {
  const { limiter, store } = await openStore();
  store.start({ only: ['config.write'] });
  await expect(limiter.manifest.apply(MANIFEST)).rejects.toMatchObject({
    name: 'ApplyStopped',
    code: 'backend.unavailable',
    applied: 2,
    total: CHANGES,
    message: expect.stringMatching(
      /^2 of 6 changes were applied, then create system limits failed: .* Apply again to do the rest$/,
    ),
  });
  store.end();
  expect([...(await marksOf(store.backend)).keys()]).toEqual(['record#proj-1', 'record#user-1']);
  expect((await limiter.manifest.plan(MANIFEST)).changes).toHaveLength(CHANGES - 2);
  await limiter.manifest.apply(MANIFEST);
  expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
});

test('after a failure of any change, applying again makes the others, and no change is made twice', async () => {
  for (let failing = 0; failing < CHANGES; failing++) {
    const { limiter, store } = await openStore();
    const stop = ({ done }: { readonly done: number }): void => {
      if (done === failing) store.start({ mode: 'fail' });
    };
    if (failing === 0) store.start({ only: ['entities.create'] });
    await expect(limiter.manifest.apply(MANIFEST, { onProgress: stop })).rejects.toMatchObject({ applied: failing });
    store.end();
    expect((await limiter.manifest.plan(MANIFEST)).changes).toHaveLength(CHANGES - failing);
    await limiter.manifest.apply(MANIFEST);
    expect((await limiter.audit.list()).items).toHaveLength(CHANGES);
  }
});

test('applying again after a lost answer detects whether the change was made', async () => {
  const { limiter, store } = await openStore();
  store.start({ only: ['entities.create'], afterWrite: true, calls: 1 });
  await expect(limiter.manifest.apply(MANIFEST)).rejects.toMatchObject({ applied: 0 });
  expect((await limiter.manifest.plan(MANIFEST)).changes).toHaveLength(CHANGES - 1);
  await limiter.manifest.apply(MANIFEST);
  expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
});

test('a failure to mark an unchanged object leaves the mark to the next apply', async () => {
  const { limiter, store } = await openStore();
  await limiter.config.setResource('gpt-4', { limits: [Limit.parse('rpm:1/min')] });
  const small = { namespace: 'default', resources: { 'gpt-4': { limits: ['rpm:1/min'] } } };
  store.start({ only: ['managed.mark'] });
  await expect(limiter.manifest.apply(small)).rejects.toThrow(
    '0 of 0 changes were applied, then noting limits of resource gpt-4 failed',
  );
  store.end();
  await limiter.manifest.apply(small);
  expect([...(await marksOf(store.backend)).keys()]).toEqual(['resource#gpt-4']);
});

/** Runs `deed` right before the first call of that method reaches the store. */
function beforeFirst(name: 'create' | 'update' | 'delete', deed: (limiter: RateLimiter) => Promise<unknown>) {
  const inner = memory();
  let isDone = false;
  const late = async (work: () => unknown): Promise<unknown> => {
    if (!isDone) {
      isDone = true;
      await deed(await RateLimiter.open(inner));
    }
    return work();
  };
  const entities = { ...inner.entities };
  const original = inner.entities[name] as (...args: unknown[]) => unknown;
  Object.assign(entities, { [name]: (...args: unknown[]) => late(() => original(...args)) });
  return { inner, backend: { ...inner, entities } };
}

test.each<[string, 'create' | 'update' | 'delete', (limiter: RateLimiter) => Promise<unknown>]>([
  [
    'creates the entity that the apply creates',
    'create',
    ({ entities }) => entities.create({ id: 'proj-1', metadata: { by: 'hand' } }),
  ],
  ['creates the wanted entity', 'create', ({ entities }) => entities.create({ id: 'proj-1', name: 'Production' })],
  [
    'changes the entity that the apply changes',
    'update',
    ({ entities }) => entities.update('proj-1', { name: 'By hand' }),
  ],
  ['makes the wanted change', 'update', ({ entities }) => entities.update('proj-1', { name: 'Production' })],
  ['deletes the entity that the apply changes', 'update', ({ entities }) => entities.delete('proj-1')],
  ['deletes the entity that the apply deletes', 'delete', ({ entities }) => entities.delete('old')],
  ['names the entity that the apply deletes', 'delete', ({ entities }) => entities.update('old', { name: 'Kept' })],
])('an apply ends as planned when another process %s at the same moment', async (_, method, deed) => {
  const { inner, backend } = beforeFirst(method, deed);
  const limiter = await RateLimiter.open(inner);
  await limiter.manifest.apply({ namespace: 'default', entities: { old: {} } });
  if (method === 'update') await limiter.entities.create({ id: 'proj-1', name: 'First' });
  const wanted = { namespace: 'default', entities: { 'proj-1': { name: 'Production' } } };
  await (await RateLimiter.open(backend)).manifest.apply(wanted);
  expect(await limiter.manifest.plan(wanted)).toEqual({ changes: [], drift: [], unchanged: 1 });
  const old = await limiter.entities.get('old');
  // A field that was set by hand, even at the last moment, is not the file's to delete.
  if (old !== null) expect(old).toMatchObject({ name: 'Kept', version: 2 });
  expect([...(await marksOf(inner)).keys()]).toEqual(['record#proj-1']);
});

test('an entity that got a child after the plan is not deleted, and the error says why', async () => {
  const { inner, backend } = beforeFirst('delete', ({ entities }) => entities.create({ id: 'child', parentId: 'old' }));
  const limiter = await RateLimiter.open(inner);
  await limiter.manifest.apply({ namespace: 'default', entities: { old: {} } });
  const other = await RateLimiter.open(backend);
  await expect(other.manifest.apply({ namespace: 'default' })).rejects.toThrow(
    '0 of 1 changes were applied, then delete entity old failed: Entity old was not changed: it has children, such as child',
  );
  expect([...(await marksOf(inner)).keys()]).toEqual(['record#old']);
});

test('an apply removes the fields that another file applied at the same moment', async () => {
  const other = { namespace: 'default', entities: { 'proj-1': { name: 'Other', cascade: true } } };
  const { inner, backend } = beforeFirst('create', (limiter) => limiter.manifest.apply(other));
  const wanted = { namespace: 'default', entities: { 'proj-1': { name: 'Production' } } };
  await (await RateLimiter.open(backend)).manifest.apply(wanted);
  const limiter = await RateLimiter.open(inner);
  expect(await limiter.entities.get('proj-1')).toMatchObject({ name: 'Production', cascade: false });
  expect((await limiter.manifest.plan(wanted)).changes).toEqual([]);
});

test('limits that another file applied after the plan are compared again', async () => {
  const inner = memory();
  const write: typeof inner.config.write = async (call, ...rest) => {
    const limiter = await RateLimiter.open(inner);
    if (call.managed !== undefined && (await limiter.config.get('system')) === null) {
      await limiter.manifest.apply({
        namespace: 'default',
        system: { onUnavailable: 'allow', limits: ['rpm:1/min'] },
      });
    }
    return inner.config.write(call, ...rest);
  };
  const limiter = await RateLimiter.open({ ...inner, config: { ...inner.config, write } });
  const wanted = { namespace: 'default', system: { limits: ['rpm:2/min'] } };
  await limiter.manifest.apply(wanted);
  expect(await limiter.config.get('system')).toMatchObject({ onUnavailable: null });
  expect(await limiter.manifest.plan(wanted)).toEqual({ changes: [], drift: [], unchanged: 1 });
});

test('two applies of the same file at the same time have the result of one', async () => {
  const backend = memory();
  const limiters = await Promise.all([RateLimiter.open(backend), RateLimiter.open(backend), RateLimiter.open(backend)]);
  await Promise.all(limiters.map(async (limiter) => limiter.manifest.apply(MANIFEST)));
  expect(await limiters[0].manifest.plan(MANIFEST)).toEqual(NOTHING);
  expect((await limiters[0].audit.list()).items).toHaveLength(CHANGES);
});

test('an export is the manifest that was applied, sorted by name', async () => {
  const { limiter } = await openStore();
  await limiter.manifest.apply(MANIFEST);
  const exported = await limiter.manifest.export();
  expect(exported).toEqual(MANIFEST);
  expect(Object.keys(exported.entities!)).toEqual(['proj-1', 'user-1']);
});

test('an export of an empty namespace contains only its name', async () => {
  const { limiter } = await openStore();
  expect(await limiter.manifest.export()).toEqual({ namespace: 'default' });
});

test('an export distinguishes an entity with an empty record from one without a record, if both have limits', async () => {
  const { limiter } = await openStore();
  const limits = { limits: [Limit.perMinute('rpm', 1)] };
  for (const id of ['with', 'without']) await limiter.config.setEntityDefault(id, limits);
  for (const id of ['with', 'bare']) await limiter.entities.create({ id });
  expect((await limiter.manifest.export()).entities).toEqual({
    bare: {},
    with: { cascade: false, default: { limits: ['rpm:1/min'] } },
    without: { default: { limits: ['rpm:1/min'] } },
  });
});

test('a listener gets a pause and its end by the file, and the end wakes the calls that wait', async () => {
  const clock = fakeClock();
  const events: string[] = [];
  const limiter = await RateLimiter.open(memory(), {
    clock,
    limits: [Limit.perDay('rpd', 100)],
    onEvent: ({ type }) => events.push(type),
  });
  const until = new Date(clock.now() + 60_000).toISOString();
  const apply = (paused: { readonly reason: string; readonly until: string } | false) =>
    limiter.manifest.apply({ namespace: 'default', entities: { key: { paused } } });
  await apply({ reason: 'vendor', until });
  expect(events).toEqual(['pause']);
  const waiting = limiter.acquire({
    entityId: 'key',
    resource: 'r',
    consume: { rpd: 1 },
    wait: { timeoutMs: 120_000 },
  });
  await expect.poll(() => clock.sleepers).toBeGreaterThan(0);
  await apply(false);
  expect((await waiting).consumed).toEqual({ rpd: 1 });
  expect(events).toContain('resume');
});

test('an export leaves out a pause that has ended, and a file that was written before its end lifts no later pause', async () => {
  const clock = fakeClock();
  const limiter = await RateLimiter.open(memory(), { clock, limits: [Limit.perDay('rpd', 100)] });
  await limiter.pause({ entityId: 'key', forMs: 20_000, reason: 'vendor' });
  const early = await limiter.manifest.export();
  expect(early.entities).toMatchObject({ key: { paused: { reason: 'vendor' } } });
  await limiter.manifest.apply(early);
  await clock.advance(30_000);
  const late = await limiter.manifest.export();
  expect(late.entities).toEqual({ key: {} });
  for (const file of [early, late, early]) {
    await limiter.pause({ entityId: 'key', forMs: 'forever', reason: 'leaked' });
    expect(await limiter.manifest.apply(file)).toMatchObject({ changes: [], drift: [] });
    const ask = { entityId: 'key', resource: 'r', consume: { rpd: 1 } };
    expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'paused' });
  }
});

test('an entity that the file no longer names is deleted, although a pause of it that has ended is stored', async () => {
  const clock = fakeClock();
  const limiter = await RateLimiter.open(memory(), { clock });
  const until = new Date(clock.now() + 60_000).toISOString();
  await limiter.manifest.apply({ namespace: 'default', entities: { key: { paused: { reason: 'vendor', until } } } });
  await clock.advance(60_000);
  await limiter.manifest.apply({ namespace: 'default', entities: {} });
  expect(await limiter.entities.get('key')).toBeNull();
});
