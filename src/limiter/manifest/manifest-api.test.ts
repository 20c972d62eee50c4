import { describe, expect, test } from 'vitest';
import { memory } from '../../backends/embedded/memory.js';
import { marksOf, objectsOf } from '../../../tests/support/logical-state.js';
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

describe('applying a manifest', () => {
  test('makes what it wants, says so step by step, and leaves nothing to plan', async () => {
    const { limiter } = await openStore();
    const heard: string[] = [];
    const done = await limiter.manifest.apply(MANIFEST, {
      onProgress: ({ change, done: count, total }) => heard.push(`${count}/${total} ${change.target.kind}`),
    });
    expect(heard).toEqual([
      '1/6 record',
      '2/6 record',
      '3/6 system',
      '4/6 resource',
      '5/6 entity_default',
      '6/6 entity',
    ]);
    expect(done.changes).toHaveLength(CHANGES);
    expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
    expect(await limiter.config.resolve('user-1', 'gpt-4')).toMatchObject({ configSource: 'entity' });
  });

  test('is seen at once by the process that does it', async () => {
    const { limiter } = await openStore();
    const ask = { entityId: 'user-1', resource: 'other', consume: { rpm: 1 } };
    await expect(limiter.acquire(ask)).rejects.toMatchObject({ code: 'limits.missing' });
    await limiter.manifest.apply(MANIFEST);
    const { statuses } = await limiter.acquire(ask).then(() => limiter.tryAcquire(ask));
    expect(statuses.map(({ entityId }) => entityId)).toEqual(['user-1', 'proj-1']);
  });

  test('leaves an audit record for each change, and none for a second time', async () => {
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

  test('shows a change by hand as drift, and puts it right', async () => {
    const { limiter } = await openStore();
    await limiter.manifest.apply(MANIFEST);
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 7)] });
    await limiter.config.delete({ resource: 'gpt-4' });
    const { changes, drift, unchanged } = await limiter.manifest.plan(MANIFEST);
    expect(changes.map(({ action, target }) => `${action} ${target.kind}`)).toEqual([
      'update system',
      'create resource',
    ]);
    expect(drift).toEqual([
      { target: { kind: 'system' }, applied: { limits: ['rpm:100/min'] }, live: { limits: ['rpm:7/min'] } },
      { target: { kind: 'resource', resource: 'gpt-4' }, applied: MANIFEST.resources!['gpt-4'], live: null },
    ]);
    expect(unchanged).toBe(CHANGES - 2);
    await limiter.manifest.apply(MANIFEST);
    expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
  });

  test('removes what the file has let go of, and nothing else', async () => {
    const { limiter, store } = await openStore();
    await limiter.config.setEntityDefault('other', { limits: [Limit.perMinute('rpm', 1)] });
    await limiter.entities.create({ id: 'other', metadata: { by: 'hand' } });
    const before = await objectsOf(store.backend);
    await limiter.manifest.apply(MANIFEST);
    await limiter.manifest.apply({ namespace: 'default' });
    expect(await objectsOf(store.backend)).toEqual(before);
    expect(await marksOf(store.backend)).toEqual(new Map());
  });

  test('writes nothing before it is confirmed', async () => {
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

  test('of another namespace is refused, and an unknown namespace is not made', async () => {
    const { limiter } = await openStore();
    const other = { ...MANIFEST, namespace: 'acme' };
    const message = 'Expected `namespace` to be default, the namespace that is open, got "acme"';
    await expect(limiter.manifest.apply(other)).rejects.toThrow(message);
    await expect(limiter.in('acme')).rejects.toMatchObject({ code: 'namespace.missing' });
    expect((await limiter.namespaces.list()).items).toHaveLength(1);
  });

  test.each([null, 7, {}, { namespace: 'default', x: 1 }])(
    'refuses %j, and asks the store for nothing',
    async (data) => {
      const { limiter, store } = await openStore();
      const before = store.calls.length;
      for (const verb of ['plan', 'apply'] as const) {
        await expect(limiter.manifest[verb](data as never)).rejects.toMatchObject({ code: 'input.invalid' });
      }
      expect(store.calls.slice(before)).toEqual([]);
    },
  );
});

describe('a change that fails', () => {
  test('stops the rest, says how far it came, and is not on record as done', async () => {
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

  test('may be any of them: applying again does the rest, and no change is made twice', async () => {
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

  test('after which its answer is lost may have been made: applying again finds out', async () => {
    const { limiter, store } = await openStore();
    store.start({ only: ['entities.create'], afterWrite: true, calls: 1 });
    await expect(limiter.manifest.apply(MANIFEST)).rejects.toMatchObject({ applied: 0 });
    expect((await limiter.manifest.plan(MANIFEST)).changes).toHaveLength(CHANGES - 1);
    await limiter.manifest.apply(MANIFEST);
    expect(await limiter.manifest.plan(MANIFEST)).toEqual(NOTHING);
  });

  test('while noting what was found as wanted leaves that for the next time', async () => {
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
});

describe('beside others', () => {
  /** Does something right before the store gets its first call of that name. */
  function before(name: 'create' | 'update' | 'delete', deed: (limiter: RateLimiter) => Promise<unknown>) {
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
      'creates what is to be created',
      'create',
      ({ entities }) => entities.create({ id: 'proj-1', metadata: { by: 'hand' } }),
    ],
    ['creates it as it is wanted', 'create', ({ entities }) => entities.create({ id: 'proj-1', name: 'Production' })],
    ['changes what is to be changed', 'update', ({ entities }) => entities.update('proj-1', { name: 'By hand' })],
    ['changes it to what is wanted', 'update', ({ entities }) => entities.update('proj-1', { name: 'Production' })],
    ['deletes what is to be changed', 'update', ({ entities }) => entities.delete('proj-1')],
    ['deletes what is to be deleted', 'delete', ({ entities }) => entities.delete('old')],
    ['names what is to be deleted', 'delete', ({ entities }) => entities.update('old', { name: 'Kept' })],
  ])('somebody %s at the same moment', async (_, method, deed) => {
    const { inner, backend } = before(method, deed);
    const limiter = await RateLimiter.open(inner);
    await limiter.manifest.apply({ namespace: 'default', entities: { old: {} } });
    if (method === 'update') await limiter.entities.create({ id: 'proj-1', name: 'First' });
    const wanted = { namespace: 'default', entities: { 'proj-1': { name: 'Production' } } };
    await (await RateLimiter.open(backend)).manifest.apply(wanted);
    expect(await limiter.manifest.plan(wanted)).toEqual({ changes: [], drift: [], unchanged: 1 });
    const old = await limiter.entities.get('old');
    // What was set by hand, even at the last moment, is not the file's to delete.
    if (old !== null) expect(old).toMatchObject({ name: 'Kept', version: 2 });
    expect([...(await marksOf(inner)).keys()]).toEqual(['record#proj-1']);
  });

  test('an entity that got a child since the plan stays, and the error says so', async () => {
    const { inner, backend } = before('delete', ({ entities }) => entities.create({ id: 'child', parentId: 'old' }));
    const limiter = await RateLimiter.open(inner);
    await limiter.manifest.apply({ namespace: 'default', entities: { old: {} } });
    const other = await RateLimiter.open(backend);
    await expect(other.manifest.apply({ namespace: 'default' })).rejects.toThrow(
      '0 of 1 changes were applied, then delete entity old failed: Entity old was not changed: it has children, such as child',
    );
    expect([...(await marksOf(inner)).keys()]).toEqual(['record#old']);
  });

  test('another file that was applied at the same moment leaves no field behind that nobody owns', async () => {
    const other = { namespace: 'default', entities: { 'proj-1': { name: 'Other', cascade: true } } };
    const { inner, backend } = before('create', (limiter) => limiter.manifest.apply(other));
    const wanted = { namespace: 'default', entities: { 'proj-1': { name: 'Production' } } };
    await (await RateLimiter.open(backend)).manifest.apply(wanted);
    const limiter = await RateLimiter.open(inner);
    expect(await limiter.entities.get('proj-1')).toMatchObject({ name: 'Production', cascade: false });
    expect((await limiter.manifest.plan(wanted)).changes).toEqual([]);
  });

  test('limits that another file applied since the plan are compared anew', async () => {
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

  test('two applies of one file at the same time end as one does', async () => {
    const backend = memory();
    const limiters = await Promise.all([
      RateLimiter.open(backend),
      RateLimiter.open(backend),
      RateLimiter.open(backend),
    ]);
    await Promise.all(limiters.map(async (limiter) => limiter.manifest.apply(MANIFEST)));
    expect(await limiters[0].manifest.plan(MANIFEST)).toEqual(NOTHING);
    expect((await limiters[0].audit.list()).items).toHaveLength(CHANGES);
  });
});

describe('an export', () => {
  test('is what was applied, in the order of names', async () => {
    const { limiter } = await openStore();
    await limiter.manifest.apply(MANIFEST);
    const exported = await limiter.manifest.export();
    expect(exported).toEqual(MANIFEST);
    expect(Object.keys(exported.entities!)).toEqual(['proj-1', 'user-1']);
  });

  test('of a namespace that has nothing is its name', async () => {
    const { limiter } = await openStore();
    expect(await limiter.manifest.export()).toEqual({ namespace: 'default' });
  });

  test('tells an entity with a bare record from one without, where both have limits', async () => {
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
});
