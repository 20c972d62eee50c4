import assert from 'node:assert/strict';
import type { AuditAction } from '../../../backend.js';
import type { AuditEvent, AuditQuery } from '../../../limiter/api/audit-api.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, USER } from '../kit/asking.js';
import { type Fixture, type Case, limits } from '../kit/fixture.js';
import { type StoredLevel, STORED_LEVELS } from '../config/config-levels.js';
import { collect } from '../kit/tenant.js';

/** Some fields of the `before` or `after` of a record; null: there was no object. */
type AuditFields = Readonly<Record<string, unknown>> | null;

interface AuditedChange {
  readonly what: string;
  readonly prepare?: (limiter: RateLimiter) => Promise<unknown>;
  readonly make: (limiter: RateLimiter) => Promise<unknown>;
  readonly action: AuditAction;
  readonly subject: string;
  readonly before: AuditFields;
  readonly after: AuditFields;
}

const SUBJECTS = {
  entity: 'user-1',
  entity_default: 'user-1',
  resource: '$RESOURCE:gpt-4',
  system: '$SYSTEM',
} as const;

/** The resource shows which of the entity's levels was changed. */
function configOf({ source }: StoredLevel, rule: string): AuditFields {
  return { limits: [rule], resource: source === 'entity' ? USER.resource : undefined };
}

const ENTITY_CHANGES: readonly AuditedChange[] = [
  {
    what: 'creating an entity',
    make: async ({ entities }) => entities.create({ id: 'user-1', name: 'Ann', metadata: { tier: 'gold' } }),
    action: 'entity.create',
    subject: 'user-1',
    before: null,
    after: { id: 'user-1', name: 'Ann', parentId: null, cascade: false, metadata: { tier: 'gold' }, version: 1 },
  },
  {
    what: 'updating an entity',
    prepare: async ({ entities }) => entities.create({ id: 'user-1', name: 'Ann' }),
    make: async ({ entities }) => entities.update('user-1', { name: 'Bea', metadata: { n: 2 } }),
    action: 'entity.update',
    subject: 'user-1',
    before: { name: 'Ann', metadata: {}, version: 1 },
    after: { name: 'Bea', metadata: { n: 2 }, version: 2 },
  },
  {
    what: 'deleting an entity',
    prepare: async ({ entities }) => entities.create({ id: 'user-1', metadata: { n: 1 } }),
    make: async ({ entities }) => entities.delete('user-1'),
    action: 'entity.delete',
    subject: 'user-1',
    before: { id: 'user-1', metadata: { n: 1 }, version: 1 },
    after: null,
  },
  {
    what: 'resetting a bucket',
    prepare: async (limiter) => limiter.acquire(ask({ rpm: 1 })),
    make: async ({ buckets }) => buckets.reset(USER),
    action: 'bucket.reset',
    subject: 'user-1',
    before: { resource: USER.resource },
    after: { resource: USER.resource },
  },
];

const CONFIG_CHANGES: readonly AuditedChange[] = STORED_LEVELS.flatMap((level) => [
  {
    what: `setting the ${level.source} limits for the first time`,
    make: async (limiter) => level.set(limiter, 'rpm:5/min'),
    action: 'config.set',
    subject: SUBJECTS[level.source],
    before: null,
    after: configOf(level, 'rpm:5/min'),
  },
  {
    what: `changing the ${level.source} limits`,
    prepare: async (limiter) => level.set(limiter, 'rpm:5/min'),
    make: async (limiter) => level.set(limiter, 'rpm:7/min:9'),
    action: 'config.set',
    subject: SUBJECTS[level.source],
    before: configOf(level, 'rpm:5/min'),
    after: configOf(level, 'rpm:7/min:9'),
  },
  {
    what: `deleting the ${level.source} limits`,
    prepare: async (limiter) => level.set(limiter, 'slots:5/concurrent'),
    make: async ({ config }) => config.delete(level.ref),
    action: 'config.delete',
    subject: SUBJECTS[level.source],
    before: configOf(level, 'slots:5/concurrent'),
    after: null,
  },
]);

/** The audit records of `query` that `work` adds. */
export async function recordsOf(
  fixture: Fixture,
  limiter: RateLimiter,
  work: () => Promise<unknown>,
  query: AuditQuery = {},
): Promise<AuditEvent[]> {
  await fixture.catchUp();
  const known = new Set((await collect(limiter.audit.list(query))).map(({ id }) => id));
  await work();
  await fixture.catchUp();
  return (await collect(limiter.audit.list(query))).filter(({ id }) => !known.has(id));
}

/** Only the expected fields of the value in a record. */
function like(held: unknown, expected: AuditFields): unknown {
  if (expected === null || typeof held !== 'object' || held === null) return held;
  const fields = Object.keys(expected).map((key) => [key, (held as Record<string, unknown>)[key]] as const);
  return Object.fromEntries(fields);
}

function assertRecord(
  record: AuditEvent | undefined,
  { action, subject, before, after }: Omit<AuditedChange, 'what' | 'make'>,
  at: Date,
): void {
  const held =
    record === undefined ? undefined : { before: like(record.before, before), after: like(record.after, after) };
  assert.deepEqual(
    { ...record, id: typeof record?.id, ...held },
    { id: 'string', at, principal: 'ann', action, subject, before, after },
  );
}

const records: readonly Case[] = [...ENTITY_CHANGES, ...CONFIG_CHANGES].map((change) => ({
  title: `${change.what} adds one audit record with the principal, the time, and the values before and after`,
  run: async (fixture) => {
    const limiter = await fixture.limiter({ principal: 'ann', limits: limits('rpm:10/min') });
    await change.prepare?.(limiter);
    await fixture.clock.advance(1_234);
    const at = new Date(fixture.clock.now());
    const [record, ...others] = await recordsOf(fixture, limiter, async () => change.make(limiter));
    assertRecord(record, change, at);
    assert.deepEqual(others, []);
  },
}));

const REGISTRY_CHANGES = [
  ['register', null, 'active'],
  ['delete', 'active', 'deleted'],
  ['recover', 'deleted', 'active'],
  ['delete', 'active', 'deleted'],
  ['purge', 'deleted', 'purging'],
] as const;

const registry: readonly Case[] = [
  {
    title:
      'registering, deleting, recovering and purging a namespace add one audit record each, which stay after the purge',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ principal: 'ann' });
      const name = `${fixture.namespace}-x`;
      const startMs = fixture.clock.now();
      for (const [verb] of REGISTRY_CHANGES) {
        await limiter.namespaces[verb](name);
        await fixture.catchUp();
        await fixture.clock.advance(1_000);
      }
      const found = await collect(limiter.audit.list({ namespace: name, limit: 2 }));
      assert.equal(found.length, REGISTRY_CHANGES.length);
      for (const [at, [verb, before, after]] of REGISTRY_CHANGES.entries()) {
        const states = { before: before && { name, status: before }, after: { name, status: after } };
        const change = { action: `namespace.${verb}`, subject: `$NAMESPACE:${name}`, ...states } as const;
        assertRecord(found[at], change, new Date(startMs + at * 1_000));
      }
    },
  },
  {
    title: 'changes of a namespace itself are not in its own audit records, nor in those of another namespace',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const other = await fixture.register();
      await limiter.namespaces.delete(other);
      await limiter.namespaces.delete(fixture.namespace);
      await fixture.catchUp();
      await limiter.namespaces.recover(fixture.namespace);
      await fixture.catchUp();
      assert.deepEqual((await limiter.audit.list()).items, []);
      const actions = (await limiter.audit.list({ namespace: other })).items.map(({ action }) => action);
      assert.deepEqual(actions, ['namespace.register', 'namespace.delete']);
    },
  },
];

export const auditRecords: readonly Case[] = [...records, ...registry];
