import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseLeaseTime } from '../../../core/identifiers.js';
import { createWriteId } from './writes/record-write.js';
import { decodeCounters } from '../table/items.js';
import { buildMigratedWriteId, isMigratedWriteId, isWriteOfMigration } from './migrated-write-id.js';

const anyTime = fc.integer({ min: 0, max: 2 ** 45 });

test('the write id of a migration contains its time and its migration', () => {
  fc.assert(
    fc.property(anyTime, fc.constantFrom('0001', '0002', '0003'), (atMs, migration) => {
      const id = buildMigratedWriteId(migration, atMs);
      expect(parseLeaseTime(id)).toBe(atMs);
      expect(isMigratedWriteId(id)).toBe(true);
      expect(['0001', '0002', '0003'].filter((other) => isWriteOfMigration(other, id))).toEqual([migration]);
    }),
  );
});

test('the write id of a take is never one of a migration', () => {
  fc.assert(
    fc.property(anyTime, fc.double({ min: 0, max: 0.999, noNaN: true }), (atMs, random) => {
      expect(isMigratedWriteId(createWriteId(atMs, () => random))).toBe(false);
    }),
  );
});

test('counters that a migration or another layout wrote are marked as foreign, and those of a take are not', () => {
  const countersOf = (w: object): unknown => decodeCounters({ b_rpm_tc: { N: '5' }, ...w }).foreign;
  expect(countersOf({ w: { S: buildMigratedWriteId('0001', 0) } })).toBe(true);
  expect(countersOf({})).toBe(true);
  expect(countersOf({ w: { S: createWriteId(0, () => 0.5) } })).toBeUndefined();
});
