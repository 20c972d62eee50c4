import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Level, LevelView } from '../api/types.js';
import { kindOf, levelsOf } from './levels.js';
import { bucketQueryOf, reachOf } from './reach.js';

const limit = {
  name: 'rpm',
  text: 'rpm:1/min',
  kind: 'rate',
  capacity: 1,
  refillAmount: 1,
  refillPeriodMs: 60_000,
} as const;
const filled = (level: Level): LevelView => ({ level, limits: [limit], onUnavailable: null });

const name = fc.constantFrom('a', 'b', 'c');
const level: fc.Arbitrary<Level> = fc.tuple(fc.option(name), fc.option(name)).map(([entityId, resource]) => ({
  ...(entityId === null ? {} : { entityId }),
  ...(resource === null ? {} : { resource }),
}));
const bucket = fc.record({ entityId: name, resource: name });
const keyOf = (bucketName: { entityId: string; resource: string }): string =>
  `${bucketName.entityId}\n${bucketName.resource}`;

test('a change of a resource reaches the buckets of the entities that have no limits of their own', () => {
  const all = [filled({ resource: 'gpt' }), filled({ entityId: 'a', resource: 'gpt' }), filled({ entityId: 'b' })];
  const buckets = ['a', 'b', 'c', 'd'].map((entityId) => ({ entityId, resource: 'gpt' }));
  expect(reachOf({ resource: 'gpt' }, buckets, all)).toEqual({ buckets: 2, entities: 2 });
});

test('a level that has no limits yet reaches the buckets that it takes over', () => {
  const buckets = [
    { entityId: 'a', resource: 'gpt' },
    { entityId: 'a', resource: 'other' },
  ];
  expect(reachOf({ entityId: 'a' }, buckets, [filled({ resource: 'gpt' })])).toEqual({ buckets: 2, entities: 1 });
});

test('no level reaches a bucket whose limits its calls name themselves', () => {
  expect(reachOf({ entityId: 'a' }, [{ entityId: 'a', resource: 'gpt~1a2b' }], [])).toEqual({
    buckets: 0,
    entities: 0,
  });
});

test('the levels of an entity and of a resource have a list of their buckets, and the system has none', () => {
  expect(bucketQueryOf({ entityId: 'a', resource: 'gpt' })).toEqual({ entityId: 'a' });
  expect(bucketQueryOf({ resource: 'gpt' })).toEqual({ resource: 'gpt' });
  expect(bucketQueryOf({})).toBeNull();
});

test('every bucket is reached by exactly one of the levels that have limits, or by none if none of its levels has any', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(level, { selector: (one) => JSON.stringify(one) }),
      fc.uniqueArray(bucket, { selector: keyOf }),
      (levels, buckets) => {
        const all = levels.map(filled);
        const reached = levels.reduce((sum, one) => sum + reachOf(one, buckets, all).buckets, 0);
        const covered = buckets.filter(({ entityId, resource }) =>
          levelsOf(entityId, resource).some((of) => levels.some((one) => JSON.stringify(one) === JSON.stringify(of))),
        );
        expect(reached).toBe(covered.length);
        for (const one of levels)
          if (kindOf(one) === 'entity and resource') expect(reachOf(one, buckets, all).buckets).toBeLessThanOrEqual(1);
      },
    ),
  );
});
