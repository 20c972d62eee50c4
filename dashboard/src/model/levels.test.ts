import { expect, test } from 'vitest';
import type { Level, LevelView } from '../api/types.js';
import { affectedBy, changesOf, kindOf, levelsOf, parseLimitLines } from './levels.js';

const limit = {
  name: 'rpm',
  text: 'rpm:1/min',
  kind: 'rate',
  capacity: 1,
  refillAmount: 1,
  refillPeriodMs: 60_000,
} as const;
const filled = (level: Level): LevelView => ({ level, limits: [limit], onUnavailable: null });
const ALL = [
  filled({ entityId: 'a', resource: 'gpt' }),
  filled({ entityId: 'a', resource: 'other' }),
  filled({ entityId: 'b' }),
  filled({ resource: 'gpt' }),
  { ...filled({ entityId: 'c' }), limits: [] },
];

test('an entity on a resource has four levels, and an empty name leaves its levels out', () => {
  const kinds = (entity: string, resource: string): string[] => levelsOf(entity, resource).map(kindOf);
  expect(kinds('a', 'gpt')).toEqual(['entity and resource', 'entity default', 'resource', 'system']);
  expect(kinds('', 'gpt')).toEqual(['resource', 'system']);
  expect(kinds('a', '')).toEqual(['entity default', 'system']);
});

test('a change concerns the entities for which no stronger level has limits', () => {
  expect(affectedBy({ entityId: 'a', resource: 'gpt' }, ALL).exceptions).toEqual([]);
  expect(affectedBy({ entityId: 'a' }, ALL).exceptions).toEqual(['a on gpt', 'a on other']);
  expect(affectedBy({ resource: 'gpt' }, ALL).exceptions).toEqual(['a on gpt', 'b']);
  expect(affectedBy({}, ALL).exceptions).toEqual(['a on gpt', 'a on other', 'b', 'gpt']);
});

test('limits are compared by their name', () => {
  expect(changesOf(['rpm:1/min', 'tpm:2/min'], ['rpm:3/min', 'slots:1/concurrent'])).toEqual([
    { name: 'rpm', before: 'rpm:1/min', after: 'rpm:3/min' },
    { name: 'tpm', before: 'tpm:2/min', after: null },
    { name: 'slots', before: null, after: 'slots:1/concurrent' },
  ]);
});

test('typed limits are separated by lines, spaces or commas', () => {
  expect(parseLimitLines(' rpm:1/min\n\ntpm:2/min, slots:1/concurrent ')).toEqual([
    'rpm:1/min',
    'tpm:2/min',
    'slots:1/concurrent',
  ]);
});
