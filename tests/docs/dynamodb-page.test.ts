import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { newBucketImage } from '../../src/backends/dynamodb/bucket/new-bucket.js';
import { buildShardItem } from '../../src/backends/dynamodb/expressions/shard-item.js';
import { addHolder, applyShardWrite } from '../../src/backends/dynamodb/bucket/shard-write.js';
import {
  encodeAudit,
  encodeConfig,
  encodeEntity,
  encodeManaged,
  encodeNamespace,
  encodeSequence,
  encodeUsage,
} from '../../src/backends/dynamodb/table/records.js';
import type { Item } from '../../src/backends/dynamodb/client/transport.js';
import { Limit } from '../../src/core/limit.js';

const PAGE = readFileSync(new URL('../../docs/backends/dynamodb.md', import.meta.url), 'utf8');
const NOW_MS = 1_800_000_000_000;

const LIMITS = [Limit.perMinute('name', 60, { cost: 1 }), Limit.concurrent('slots', 2)];
const HOLDER = { expiresAtMs: NOW_MS, acquiredAtMs: NOW_MS, slots: [], rates: null, caller: 'me' };

/** One record of each kind, with all its optional attributes. */
function everyRecord(): readonly Item[] {
  const of = { entityId: 'user-1', resource: 'gpt-4' };
  const created = newBucketImage(
    { ...of, shard: 0 },
    { ...of, limits: LIMITS, version: { sequence: 1, openedAtMs: 1 } },
    NOW_MS,
  );
  const holders = [addHolder('lease', HOLDER)];
  const held = { limits: [], acquires: 1, expired: 0, holders, adopts: null, ttlSec: 1 };
  const namespace = { id: 'ns', name: 'default', status: 'active', createdAtMs: NOW_MS } as const;
  const record = { atMs: NOW_MS, principal: 'ann', action: 'config.set', before: {}, after: {} } as const;
  const entity = { id: 'user-1', name: 'Ann', parentId: 'proj', cascade: true, metadata: {}, createdAtMs: NOW_MS };
  const config = { limits: LIMITS, onUnavailable: 'block', v: 1 } as const;
  const counts = { consumedMilli: new Map([['name', 1]]), acquires: 1, expired: 0 };
  return [
    buildShardItem('ns', applyShardWrite(created, held, 'write')),
    encodeEntity('ns', { ...entity, version: 1 }),
    encodeConfig('ns', { kind: 'entity', ...of }, config, 1),
    encodeSequence('ns', 1),
    encodeManaged('ns', 'object', {}),
    encodeUsage('ns', { ...of, window: 'monthly', startMs: NOW_MS, ...counts }),
    encodeAudit('ns', { ...record, id: 'ulid', subject: '$SYSTEM' }),
    encodeNamespace('id', namespace, NOW_MS),
  ];
}

/** The spelling of the page: names of limits and leases in braces, and further fields of a rule without the name. */
function spellings(attribute: string): readonly string[] {
  const [, field = ''] = /^b_.*(_\w+)$/.exec(attribute) ?? [];
  const spelt = attribute.replace(/^(b|l|u)_(?:name|slots)/, '$1_{limit}').replace(/^h_.*/, 'h_{lease}');
  return field === '' ? [`\`${spelt}\``] : [`\`${spelt}\``, `\`${field}\``];
}

test('the page on DynamoDB has every stored attribute', () => {
  const stored = new Set(everyRecord().flatMap((item) => Object.keys(item)));
  const unknown = [...stored]
    .filter((attribute) => !/^(?:PK|SK|GSI\d[PS]K)$/.test(attribute))
    .filter((attribute) => !spellings(attribute).some((spelling) => PAGE.includes(spelling)));
  expect(unknown).toEqual([]);
});

test('the page on DynamoDB has every key of records and indexes', () => {
  const shapes = new Set(
    everyRecord().flatMap((item) =>
      Object.entries(item).flatMap(([name, { S = '' }]) => (/[PS]K$/.test(name) ? [S.split(/[#~]/)[0] ?? ''] : [])),
    ),
  );
  const spelt = [...shapes]
    .filter((shape) => shape !== '' && shape !== 'user-1')
    .map((shape) => shape.replace(/^ns\//, '{ns}/'));
  expect(spelt.filter((shape) => !PAGE.includes(shape))).toEqual([]);
});
