import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeAudit,
  decodeConfig,
  decodeConfigWrites,
  decodeEntity,
  decodeUsage,
  encodeConfig,
} from '../../table/records.js';
import type { Item } from '../../client/transport.js';
import { mapAudit, mapConfig, mapEntity, mapLimits, mapNamespace, mapUsage } from './legacy-records.js';
import { planAudit, planConfig, planEntity, planUsage } from '../convert/plan-records.js';
import type { ConversionPlan } from '../convert/conversion.js';
import { Unmappable } from '../unmappable.js';

const text = (S: string) => ({ S });
const number = (N: number) => ({ N: String(N) });
const LEVEL = { kind: 'resource', resource: 'gpt-4' } as const;
const itemOf = (plan: ConversionPlan): Item => ('item' in plan ? plan.item : {});

const someRule = fc.record({
  capacity: fc.integer({ min: 1, max: 10 ** 6 }),
  burst: fc.integer({ min: 1, max: 10 ** 6 }),
  seconds: fc.integer({ min: 1, max: 86_400 }),
});

describe('converting config', () => {
  test('limit items and a composite item with the same rules give the same config, in milliseconds, with the burst as capacity', () => {
    fc.assert(
      fc.property(fc.array(someRule, { minLength: 1, maxLength: 4 }), (rules) => {
        const single = rules.map(({ capacity, burst, seconds }, at) => ({
          limit: `l${at}`,
          item: {
            capacity: number(capacity),
            burst: number(burst),
            refill_amount: number(capacity),
            refill_period_seconds: number(seconds),
          },
        }));
        const fields = rules.flatMap(({ capacity, burst, seconds }, at) => [
          [`l_l${at}_cp`, number(burst)] as const,
          [`l_l${at}_ra`, number(capacity)] as const,
          [`l_l${at}_rp`, number(seconds)] as const,
        ]);
        const whole = mapConfig(Object.fromEntries(fields));
        expect(mapLimits(single)).toEqual(whole);
        const { limits } = decodeConfig(encodeConfig('ns', LEVEL, whole.config, whole.writes));
        expect(
          limits?.map(({ capacity, refillAmount, refillPeriodMs }) => ({ capacity, refillAmount, refillPeriodMs })),
        ).toEqual(
          rules.map(({ capacity, burst, seconds }) => ({
            capacity: burst,
            refillAmount: capacity,
            refillPeriodMs: seconds * 1_000,
          })),
        );
      }),
    );
  });

  const limits = mapConfig({
    l_rpm_cp: number(5),
    l_rpm_ra: number(5),
    l_rpm_rp: number(60),
    config_version: number(4),
  });
  const policy = mapConfig({ on_unavailable: text('allow') });

  test('separate limits and policy are combined, whichever is converted first', () => {
    const first = itemOf(planConfig('ns', { kind: 'system' }, limits, undefined));
    const both = itemOf(planConfig('ns', { kind: 'system' }, policy, first));
    expect(decodeConfig(both)).toMatchObject({ limits: [{ name: 'rpm' }], onUnavailable: 'allow', v: 1 });
    expect(decodeConfigWrites(both)).toBe(4);
    const other = itemOf(planConfig('ns', { kind: 'system' }, policy, undefined));
    expect(itemOf(planConfig('ns', { kind: 'system' }, limits, other))).toEqual(both);
    expect(planConfig('ns', { kind: 'system' }, policy, both)).toEqual({ kind: 'same' });
  });

  test('the config with more writes is newer, and equal counts overwrite nothing', () => {
    const there = itemOf(planConfig('ns', LEVEL, limits, undefined));
    const other = mapConfig({
      l_rpm_cp: number(6),
      l_rpm_ra: number(6),
      l_rpm_rp: number(60),
      config_version: number(5),
    });
    expect(decodeConfig(itemOf(planConfig('ns', LEVEL, other, there))).limits).toMatchObject([{ capacity: 6 }]);
    expect(() => planConfig('ns', LEVEL, { ...other, writes: 4 }, there)).toThrow(Unmappable);
  });

  test('a rule that this version would refuse is refused, not changed', () => {
    expect(() => mapConfig({ l_rpm_cp: number(5), l_rpm_ra: number(0), l_rpm_rp: number(60) })).toThrow(Unmappable);
    expect(() => mapConfig({ l_rpm_cp: number(5), l_rpm_ra: number(5) })).toThrow(new Unmappable('it has no l_rpm_rp'));
  });
});

test('a converted entity keeps all its fields', () => {
  const item: Item = {
    data: {
      M: {
        name: text('User One'),
        parent_id: text('proj-1'),
        created_at: text('2026-01-02T03:04:05Z'),
        metadata: { M: { tier: text('gold'), tags: { L: [number(1), { BOOL: false }, { NULL: true }] } } },
      },
    },
    cascade: { BOOL: true },
  };
  const plan = planEntity('ns', mapEntity(item, 'user-1'), undefined);
  expect(decodeEntity(itemOf(plan))).toEqual({
    id: 'user-1',
    name: 'User One',
    parentId: 'proj-1',
    cascade: true,
    metadata: { tier: 'gold', tags: [1, false, null] },
    createdAtMs: Date.UTC(2026, 0, 2, 3, 4, 5),
    version: 1,
  });
  expect(planEntity('ns', mapEntity(item, 'user-1'), itemOf(plan))).toEqual({ kind: 'same' });
  const newer = { ...mapEntity(item, 'user-1'), name: 'other', version: 2 };
  const children = { ...itemOf(plan), children: number(7) };
  expect(itemOf(planEntity('ns', newer, children))).toMatchObject({ name: text('other'), children: number(7) });
  expect(() => planEntity('ns', { ...newer, version: 1 }, itemOf(plan))).toThrow(Unmappable);
});

test('converted usage counts whole tokens without the hidden limit, and adds to existing usage', () => {
  const item: Item = {
    window: text('hourly'),
    window_start: text('2026-01-01T14:00:00Z'),
    tpm: number(5_000),
    wcu: number(3),
    total_events: number(10),
    ttl: number(1),
  };
  const record = mapUsage(item, 'user-1', 'gpt-4', '2026-01-01T14:00:00Z');
  const first = itemOf(planUsage('ns', record, undefined));
  const counts = decodeUsage(itemOf(planUsage('ns', record, { ...first, q_0: text('seen') })));
  expect(counts).toMatchObject({ window: 'hourly', startMs: Date.UTC(2026, 0, 1, 14), acquires: 10 });
  expect(counts.consumedMilli).toEqual(new Map([['tpm', 10_000_000]]));
  expect(itemOf(planUsage('ns', record, { ...first, q_0: text('seen') }))['q_0']).toEqual(text('seen'));
  expect(() => mapUsage({ ...item, window: text('weekly') }, 'user-1', 'gpt-4', '')).toThrow(Unmappable);
});

test('a converted audit record has the action names of this version', () => {
  const item: Item = {
    timestamp: text('2026-01-01T00:00:00Z'),
    action: text('limits_set'),
    principal: text('alice'),
    resource: text('gpt-4'),
    details: { M: { limits: { L: [text('rpm')] } } },
  };
  const record = mapAudit(item, 'user-1', '01J');
  const plan = planAudit('ns', record, item, undefined);
  expect(decodeAudit(itemOf(plan))).toMatchObject({
    id: '01J',
    atMs: Date.UTC(2026, 0, 1),
    action: 'config.set',
    principal: 'alice',
    after: { limits: ['rpm'], resource: 'gpt-4' },
  });
  expect(planAudit('ns', record, item, itemOf(plan))).toEqual({ kind: 'same' });
  expect(() => planAudit('ns', { ...record, principal: 'eve' }, item, itemOf(plan))).toThrow(Unmappable);
});

test('a converted audit record does not expire earlier than before', () => {
  const item: Item = { timestamp: text('2026-01-01T00:00:00Z'), action: text('limits_set') };
  const lifeOf = (ttl: object): unknown =>
    itemOf(planAudit('ns', mapAudit(item, 'user-1', '01J'), { ...item, ...ttl }, undefined))['ttl'];
  expect(lifeOf({})).toBeUndefined();
  expect(lifeOf({ ttl: number(4_000_000_000) })).toEqual(number(4_000_000_000));
  expect(lifeOf({ ttl: number(1) })).toEqual(number(Date.UTC(2026, 3, 1) / 1_000));
});

test('a namespace is decoded from its key and its attributes', () => {
  const item: Item = {
    namespace_id: text('a7x'),
    namespace_name: text('acme'),
    created_at: text('2026-01-01T00:00:00Z'),
  };
  const expected = { id: 'a7x', name: 'acme', status: 'active', createdAtMs: Date.UTC(2026, 0, 1) };
  expect(mapNamespace(item, 'name', 'acme')).toEqual(expected);
  expect(mapNamespace(item, 'id', 'a7x')).toEqual(expected);
  expect(() => mapNamespace({}, 'id', 'a7x')).toThrow(Unmappable);
});
