import { expect, test } from 'vitest';
import type { Level, LevelView } from '../api/types.js';
import { affectedBy, changesOf, kindOf, levelsOf, nameOfLevel, parseLimitLines } from './levels.js';

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
  expect(affectedBy({}, ALL).exceptions).toEqual(['a on gpt', 'a on other', 'b', 'every entity on gpt']);
});

test('limits are compared by their name', () => {
  expect(changesOf(['rpm:1/min', 'tpm:2/min'], ['rpm:3/min', 'slots:1/concurrent'])).toEqual([
    { name: 'rpm', before: 'rpm:1/min', after: 'rpm:3/min' },
    { name: 'tpm', before: 'tpm:2/min', after: null },
    { name: 'slots', before: null, after: 'slots:1/concurrent' },
  ]);
});

test('typed limits are separated by lines, spaces or commas', () => {
  const limits = ['rpm:1/min', 'tpm:2/min', 'slots:1/concurrent'];
  expect(parseLimitLines(' rpm:1/min\n\ntpm:2/min, slots:1/concurrent ')).toEqual({ limits, wrong: [] });
});

test('words that are no limits are named, and every form of a limit is one', () => {
  const forms = 'tpm:10000/min:50000 jobs:500/90s rpm:1/sec x:unlimited tpm:9/day@3!reserve.batch=0.3!shadow';
  expect(parseLimitLines(forms).wrong).toEqual([]);
  expect(parseLimitLines('foo rpm:abc rpm:6 rpm:6/week rpm:1/min').wrong).toEqual([
    'foo',
    'rpm:abc',
    'rpm:6',
    'rpm:6/week',
  ]);
});

test('a level says whom it concerns, so that an entity and a resource of the same name differ', () => {
  const levels: Level[] = [{ entityId: 'gpt' }, { resource: 'gpt' }, { entityId: 'a', resource: 'gpt' }, {}];
  expect(levels.map(nameOfLevel)).toEqual(['gpt', 'every entity on gpt', 'a on gpt', 'the system']);
});
