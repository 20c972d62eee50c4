import { expect, test } from 'vitest';
import { compareObject, type Comparison, type Views } from './compare-object.js';
import type { ManagedTarget } from './managed.js';

const RECORD: ManagedTarget = { kind: 'record', entityId: 'user-1' };
const NOW_MS = Date.UTC(2027, 0, 31);
const SYSTEM: ManagedTarget = { kind: 'system' };
const EMPTY_RECORD = { name: null, parent: null, cascade: false, bypass: false, metadata: {}, paused: null };

function compare(target: ManagedTarget, views: Partial<Views>): Comparison {
  return compareObject(target, { wanted: undefined, owned: undefined, live: undefined, ...views }, NOW_MS);
}

test('an object that the file declares and the store lacks is created', () => {
  const { change, mark, isMarked, drift } = compare(RECORD, { wanted: { name: 'Ann' } });
  expect(change).toEqual({ action: 'create', target: RECORD, before: null, after: { name: 'Ann' } });
  expect([mark, isMarked, drift]).toEqual([{ key: 'record#user-1', value: { name: 'Ann' }, seen: null }, false, null]);
});

test('an object that the file declares without fields is created empty', () => {
  expect(compare(RECORD, { wanted: {} }).change).toMatchObject({ action: 'create', after: {} });
});

test('an object that is already as wanted is marked and not changed', () => {
  const live = { ...EMPTY_RECORD, name: 'Ann', metadata: { by: 'hand' } };
  const { change, drift, isMarked } = compare(RECORD, { wanted: { name: 'Ann' }, live });
  expect([change, drift, isMarked]).toEqual([null, null, false]);
});

test('an object keeps the fields that the file does not name', () => {
  const live = { ...EMPTY_RECORD, name: 'By hand', cascade: true };
  const { change, writes, final } = compare(RECORD, { wanted: { cascade: false }, live });
  expect(change).toMatchObject({
    action: 'update',
    before: { name: 'By hand', cascade: true },
    after: { name: 'By hand' },
  });
  expect([writes, final]).toEqual([{ cascade: false }, { ...EMPTY_RECORD, name: 'By hand' }]);
});

test('an object loses the fields that the file named before and no longer names', () => {
  const live = { limits: ['rpm:1/min'], onUnavailable: 'local' };
  const views = { wanted: { limits: ['rpm:1/min'] }, owned: { limits: ['rpm:1/min'], onUnavailable: 'local' }, live };
  expect(compare(SYSTEM, views)).toMatchObject({
    change: { action: 'update', after: { limits: ['rpm:1/min'] } },
    writes: { onUnavailable: null },
    mark: { value: { limits: ['rpm:1/min'] } },
    drift: null,
  });
});

test('the order of limits makes no difference', () => {
  const wanted = { limits: ['a:1/min', 'b:1/min'] };
  const live = { limits: ['b:1/min', 'a:1/min'], onUnavailable: null };
  expect(compare(SYSTEM, { wanted, owned: live, live }).change).toBeNull();
});

test('the order of metadata fields makes no difference, but the order of list items does', () => {
  const wanted = { metadata: { a: 1, b: { c: [1, 2], d: null } } };
  const same = { ...EMPTY_RECORD, metadata: { b: { d: null, c: [1, 2] }, a: 1 } };
  expect(compare(RECORD, { wanted, live: same }).change).toBeNull();
  const other = { ...EMPTY_RECORD, metadata: { b: { d: null, c: [2, 1] }, a: 1 } };
  expect(compare(RECORD, { wanted, live: other }).change).not.toBeNull();
  const tricky = { ...EMPTY_RECORD, metadata: { a: 1, b: { c: { 0: 1, 1: 2 }, d: null } } };
  expect(compare(RECORD, { wanted, live: tricky }).change).not.toBeNull();
});

test('an object that the file no longer names is deleted if it has no other fields', () => {
  const live = { ...EMPTY_RECORD, name: 'Ann' };
  const { change, mark, final, drift } = compare(RECORD, { owned: { name: 'Ann' }, live });
  expect(change).toEqual({ action: 'delete', target: RECORD, before: { name: 'Ann' }, after: null });
  expect([mark.value, final, drift]).toEqual([null, null, null]);
});

test('an object that the file no longer names keeps the fields that were set by hand', () => {
  const live = { ...EMPTY_RECORD, name: 'Ann', metadata: { by: 'hand' } };
  expect(compare(RECORD, { owned: { name: 'Ann' }, live })).toMatchObject({
    change: { action: 'update', after: { metadata: { by: 'hand' } } },
    writes: { name: null },
    mark: { value: null },
  });
  const system = { limits: ['a:1/min'], onUnavailable: 'allow' };
  expect(compare(SYSTEM, { owned: { limits: ['a:1/min'] }, live: system })).toMatchObject({
    change: { action: 'update', after: { onUnavailable: 'allow' } },
    writes: { limits: null },
  });
});

test('the mark of an object that no longer exists is removed', () => {
  const { change, drift, mark, isMarked } = compare(SYSTEM, { owned: { limits: ['a:1/min'] } });
  expect([change, drift, mark.value, isMarked]).toEqual([null, null, null, false]);
});

test('a change by hand to an object that the file no longer names is drift', () => {
  const live = { limits: ['a:2/min'], onUnavailable: null };
  const { change, drift } = compare(SYSTEM, { owned: { limits: ['a:1/min'] }, live });
  expect(change?.action).toBe('delete');
  expect(drift).toEqual({ target: SYSTEM, applied: { limits: ['a:1/min'] }, live: { limits: ['a:2/min'] } });
});

const applied = { limits: ['a:1/min'] };

test('drift lists each field that was changed by hand', () => {
  const live = { ...EMPTY_RECORD, name: 'By hand', cascade: true };
  const { drift } = compare(RECORD, {
    wanted: { name: 'Ann', cascade: true },
    owned: { name: 'Ann', cascade: true },
    live,
  });
  expect(drift).toEqual({ target: RECORD, applied: { name: 'Ann' }, live: { name: 'By hand' } });
});

test('an object that was removed by hand is drift', () => {
  const { change, drift } = compare(SYSTEM, { wanted: applied, owned: applied });
  expect(change?.action).toBe('create');
  expect(drift).toEqual({ target: SYSTEM, applied, live: null });
});

test('a field that the file itself changes is not drift', () => {
  const live = { ...applied, onUnavailable: null };
  expect(compare(SYSTEM, { wanted: { limits: ['a:9/min'] }, owned: applied, live }).drift).toBeNull();
});

test('a change by hand to the value that the file declares now is adopted and is not drift', () => {
  const wanted = { limits: ['a:9/min'] };
  const { change, drift, isMarked } = compare(SYSTEM, {
    wanted,
    owned: applied,
    live: { ...wanted, onUnavailable: null },
  });
  expect([change, drift, isMarked]).toEqual([null, null, false]);
});

test('a change by hand to a field that the file never named is not drift', () => {
  const live = { ...applied, onUnavailable: 'allow' };
  expect(compare(SYSTEM, { wanted: applied, owned: applied, live })).toMatchObject({
    change: null,
    drift: null,
    isMarked: true,
  });
});

const ENDED = { reason: 'vendor', until: '2027-01-30T00:00:00.000Z' };
const FOREVER = { reason: 'leaked' };

test.each([
  ['never named a pause', undefined],
  ['named the same pause before', { paused: ENDED }],
  ['named another pause before', { paused: { reason: 'unpaid', until: '2027-03-01T00:00:00.000Z' } }],
])('a pause that has ended in the file leaves a pause by hand alone, where the file %s', (_, owned) => {
  const live = { ...EMPTY_RECORD, paused: FOREVER };
  const { change, drift, mark } = compare(RECORD, { wanted: { paused: ENDED }, owned, live });
  expect([change, drift, mark]).toEqual([null, null, { key: 'record#user-1', value: {}, seen: owned ?? null }]);
});

test('a pause that the file owns ends when the file moves its end into the past', () => {
  const running = { reason: 'unpaid', until: '2027-03-01T00:00:00.000Z' };
  const live = { ...EMPTY_RECORD, paused: running };
  const { change } = compare(RECORD, { wanted: { paused: ENDED }, owned: { paused: running }, live });
  expect(change).toMatchObject({ action: 'update', before: { paused: running }, after: {} });
});

test('a pause that the file owned and that has ended is not owned any more', () => {
  const live = { ...EMPTY_RECORD, name: 'Ann', paused: FOREVER };
  const { change, drift } = compare(RECORD, { wanted: { name: 'Ann' }, owned: { name: 'Ann', paused: ENDED }, live });
  expect([change, drift]).toEqual([null, null]);
});
