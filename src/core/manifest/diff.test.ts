import { expect, test } from 'vitest';
import { type LiveState, type ApplyPlan, planChanges } from './diff.js';
import { Limit } from '../limit.js';
import type { Fields, LiveRecord } from './managed-fields.js';
import { buildManagedKey, describeTarget } from './managed.js';
import { readManifest } from './manifest.js';

const EMPTY_RECORD: LiveRecord = { name: null, parentId: null, cascade: false, metadata: {}, version: 1 };

/** Records by id and parent, levels by key and limits. */
function liveOf(
  parents: Readonly<Record<string, string | null>>,
  levels: Readonly<Record<string, string[]>> = {},
): LiveState {
  const configs = Object.entries(levels).map(
    ([key, texts]) => [key, { limits: texts.map((text) => Limit.parse(text)), onUnavailable: null, v: 1 }] as const,
  );
  const records = Object.entries(parents).map(([id, parentId]) => [id, { ...EMPTY_RECORD, parentId }] as const);
  return { configs: new Map(configs), records: new Map(records) };
}

function plan(entities: object, live: LiveState, owned: Readonly<Record<string, Fields>> = {}): ApplyPlan {
  return planChanges({
    wanted: readManifest({ namespace: 'default', entities }),
    owned: new Map(Object.entries(owned)),
    live,
    nowMs: 0,
  });
}

function printed({ steps }: ApplyPlan): string[] {
  return steps.map(({ change }) => `${change.action} ${describeTarget(change.target)}`);
}

test('changes are ordered: records from the top, limits, deleted limits, deleted records from the bottom', () => {
  const limits = { limits: ['a:1/min'] };
  const wanted = { child: { parent: 'top', default: limits }, top: { resources: { r: limits } } };
  const live = liveOf({ old: null, older: 'old' }, { 'resource#x': ['a:1/min'], 'entity#old#r': ['a:1/min'] });
  const owned = { 'record#old': {}, 'record#older': { parent: 'old' }, 'resource#x': limits, 'entity#old#r': limits };
  expect(printed(plan({ ...wanted, top: { name: 'T', ...wanted.top } }, live, owned))).toEqual([
    'create entity top',
    'create entity child',
    'create default limits of child',
    'create limits of top on r',
    'delete limits of old on r',
    'delete limits of resource x',
    'delete entity older',
    'delete entity old',
  ]);
});

test('the order of changes does not depend on the order in which the store lists the marks', () => {
  const owned = { 'resource#b': { limits: ['a:1/min'] }, 'resource#a': { limits: ['a:1/min'] } };
  const live = liveOf({}, { 'resource#a': ['a:1/min'], 'resource#b': ['a:1/min'] });
  const reversed = Object.fromEntries(Object.entries(owned).toReversed());
  expect(printed(plan({}, live, owned))).toEqual(printed(plan({}, live, reversed)));
});

test.each<[string, object, Readonly<Record<string, string | null>>, string[], string]>([
  [
    'a parent that does not exist',
    { a: { parent: 'b' } },
    {},
    [],
    'Expected `entities.a.parent` to be an entity of the file, or one that exists, got "b"',
  ],
  [
    'a parent for which the file has limits but no record',
    { a: { parent: 'b' }, b: { default: { limits: ['x:1/min'] } } },
    {},
    [],
    'Expected `entities.a.parent` to be an entity of the file, or one that exists, got "b"',
  ],
  [
    'a parent that the file no longer names',
    { a: { parent: 'b' } },
    { a: 'b', b: null },
    ['b'],
    'Expected `entities.a.parent` to be an entity that the file keeps, got "b"',
  ],
  [
    'to delete an entity with a child that is not in the file',
    {},
    { b: null, stranger: 'b' },
    ['b'],
    'Expected `entities.b` to be in the file, or without children that stay, got "the child stranger"',
  ],
  [
    'a cycle through entities that are not in the file',
    { a: { parent: 'stranger' } },
    { a: null, stranger: 'a' },
    [],
    'Expected `entities.a.parent` to be above the entity, not below it, got "stranger"',
  ],
  [
    'a chain that is too long through entities that are not in the file',
    { a: { parent: 's7' } },
    { a: null, below: 'a', s1: null, s2: 's1', s3: 's2', s4: 's3', s5: 's4', s6: 's5', s7: 's6' },
    [],
    'Expected `entities.a.parent` to be at the end of at most 8 levels, got "9 levels, down to below"',
  ],
])('the plan refuses %s, because the store would', (_, entities, parents, owned, message) => {
  const marks = Object.fromEntries(owned.map((id) => [`record#${id}`, {}]));
  expect(() => plan(entities, liveOf(parents), marks)).toThrow(message);
});

test('an entity can be deleted together with its children, or after they have moved', () => {
  const live = liveOf({ b: null, child: 'b' });
  expect(printed(plan({}, live, { 'record#b': {}, 'record#child': { parent: 'b' } }))).toEqual([
    'delete entity child',
    'delete entity b',
  ]);
  expect(printed(plan({ child: { parent: 'c' }, c: {} }, live, { 'record#b': {} }))).toEqual([
    'create entity c',
    'update entity child',
    'delete entity b',
  ]);
});

test('a plan counts unchanged objects, and marks objects that it adopts or that no longer exist', () => {
  const limits = { limits: ['a:1/min'] };
  const live = liveOf({ a: null }, { 'entity_default#a': ['a:1/min'] });
  const { steps, unchanged, unmarked } = plan({ a: { cascade: false, default: limits } }, live, {
    'entity_default#a': limits,
    'record#gone': {},
  });
  expect([steps, unchanged]).toEqual([[], 2]);
  expect(unmarked.map(({ mark }) => mark)).toEqual([
    { key: 'record#a', value: { cascade: false }, seen: null },
    { key: 'record#gone', value: null, seen: {} },
  ]);
});

test('a plan leaves marks with an unknown key as they are', () => {
  const { steps, unmarked } = plan({}, liveOf({}), { 'webhook#a': { url: 'x' } });
  expect([steps, unmarked]).toEqual([[], []]);
});

test('a plan does not mention objects that the file neither names nor owns', () => {
  const live = liveOf({ stranger: null }, { system: ['a:1/min'] });
  expect(plan({}, live)).toEqual({ steps: [], drift: [], unchanged: 0, unmarked: [] });
});

test('a plan has the version of each record that it compared', () => {
  const { steps } = plan({ a: { name: 'A' }, b: { name: 'B' } }, liveOf({ a: null }));
  expect(steps.map(({ target, seenVersion }) => [buildManagedKey(target), seenVersion])).toEqual([
    ['record#a', 1],
    ['record#b', null],
  ]);
});
