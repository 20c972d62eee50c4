import { describe, expect, test } from 'vitest';
import {
  buildConfigKey,
  buildEntityKey,
  buildManagedRecordKey,
  buildMigrationKey,
  buildSequenceKey,
  buildUsageKey,
  buildWorkerKey,
} from '../table/keys.js';
import { parseLegacyKey } from './legacy-key.js';

describe('parsing keys of the published layouts', () => {
  test.each([
    ['ENTITY#user-1', '#META', { ns: null, kind: 'entity', entityId: 'user-1' }],
    ['ns/ENTITY#a/b', '#META', { ns: 'ns', kind: 'entity', entityId: 'a/b' }],
    ['ENTITY#a/b', '#META', { ns: null, kind: 'entity', entityId: 'a/b' }],
    [
      'ENTITY#u',
      '#BUCKET#gpt/4#rpm',
      { ns: null, kind: 'limit-bucket', entityId: 'u', resource: 'gpt/4', limit: 'rpm' },
    ],
    ['ENTITY#u', '#BUCKET#gpt-4', { ns: null, kind: 'bucket', entityId: 'u', resource: 'gpt-4' }],
    ['ns/ENTITY#u', '#BUCKET#gpt-4', { ns: 'ns', kind: 'bucket', entityId: 'u', resource: 'gpt-4' }],
    ['ns/BUCKET#u#r#12', '#STATE', { ns: 'ns', kind: 'shard', entityId: 'u', resource: 'r', shard: 12 }],
    [
      'ENTITY#u',
      '#LIMIT#_default_#rpm',
      { ns: null, kind: 'limit', level: { kind: 'entity_default', entityId: 'u' }, limit: 'rpm' },
    ],
    ['SYSTEM#', '#LIMIT#rpm', { ns: null, kind: 'limit', level: { kind: 'system' }, limit: 'rpm' }],
    [
      'RESOURCE#r',
      '#LIMIT#r#rpm',
      { ns: null, kind: 'limit', level: { kind: 'resource', resource: 'r' }, limit: 'rpm' },
    ],
    ['ns/ENTITY#u', '#CONFIG#r', { ns: 'ns', kind: 'config', level: { kind: 'entity', entityId: 'u', resource: 'r' } }],
    ['ns/SYSTEM#', '#CONFIG', { ns: 'ns', kind: 'config', level: { kind: 'system' } }],
    [
      'ENTITY#u',
      '#USAGE#r#2024-01-01T14:00:00Z',
      { ns: null, kind: 'usage', entityId: 'u', resource: 'r', window: '2024-01-01T14:00:00Z' },
    ],
    ['AUDIT#$RESOURCE:r', '#AUDIT#01J', { ns: null, kind: 'audit', subject: '$RESOURCE:r', id: '01J' }],
    ['_/SYSTEM#', '#NAMESPACE#acme', { ns: '_', kind: 'namespace', under: 'name', value: 'acme' }],
    ['_/SYSTEM#', '#NSID#a7x', { ns: '_', kind: 'namespace', under: 'id', value: 'a7x' }],
    ['ns/SYSTEM#', '#VERSION', { ns: 'ns', kind: 'version' }],
  ])('parses the key %s %s', (PK, SK, expected) => {
    expect(parseLegacyKey({ PK, SK })).toEqual(expected);
  });

  test.each([
    ['SYSTEM#', '#LIMIT#gpt-4#rpm'],
    ['ENTITY#u', '#RESOURCES'],
    ['BUCKET#u#r#0', '#STATE'],
    ['ns/BUCKET#u#r#x', '#STATE'],
    ['anything', 'else'],
    ['', ''],
  ])('the key %s %s belongs to no published layout', (PK, SK) => {
    expect(parseLegacyKey({ PK, SK })).toBeNull();
  });

  test('a record whose key did not change is found by its old key', () => {
    const level = { kind: 'entity', entityId: 'u', resource: 'r' } as const;
    expect(parseLegacyKey(buildConfigKey('ns', level))).toMatchObject({ ns: 'ns', level });
    expect(parseLegacyKey(buildEntityKey('ns', 'u'))).toMatchObject({ ns: 'ns', entityId: 'u' });
  });

  test('a key that only this version has is never parsed as an old one', () => {
    const keys = [
      buildSequenceKey('ns'),
      buildManagedRecordKey('ns', 'system'),
      buildWorkerKey('2027', 'shard-1'),
      buildMigrationKey('0001', 'state'),
      buildMigrationKey('0001', 'pass'),
      buildUsageKey('ns', 'u', 'r', 'daily', 0),
    ];
    expect(keys.map(parseLegacyKey)).toEqual(keys.map(() => null));
  });
});
