/** The stored size of buckets of different shapes and the billed units of a write, computed with the real codec. */
import { pathToFileURL } from 'node:url';
import { buildShardItem } from '../src/backends/dynamodb/expressions/shard-item.js';
import { writeUnits } from '../src/backends/dynamodb/bucket/writes/record-write.js';
import { newBucketImage } from '../src/backends/dynamodb/bucket/new-bucket.js';
import { decodeShard, encodeHolder, decodeHolder, type ShardImage } from '../src/backends/dynamodb/table/items.js';
import type { Item } from '../src/backends/dynamodb/client/transport.js';
import { buildLeaseId } from '../src/core/identifiers.js';
import { Limit } from '../src/core/limit.js';

const NOW_MS = 1_800_000_000_123;
const NAMESPACE_ID = 'x7Kp2mQ9_aB';
const LIMITS = [1, 2, 5, 10, 20];
const HOLDERS = [0, 1, 10, 100, 1_000];
/** Lengths of the entity's id and of the resource's name. */
const NAMES = [
  [8, 5],
  [36, 20],
  [128, 64],
  [256, 128],
] as const;

/** A bucket in use: partly used rates, and one concurrent limit if there are holders. */
function bucketItem(limitCount: number, holderCount: number, names: readonly [number, number]): Item {
  const limits = Array.from({ length: limitCount }, (_, at) =>
    holderCount > 0 && at === limitCount - 1
      ? Limit.concurrent('slots', 2_000)
      : Limit.perMinute(`lim${String(at).padStart(2, '0')}`, 12_345),
  );
  const level = {
    entityId: 'e'.repeat(names[0]),
    resource: 'r'.repeat(names[1]),
    limits,
    version: { sequence: 1_234, openedAtMs: 0 },
  };
  const born = newBucketImage({ ...level, shard: 0 }, level, NOW_MS);
  const image: ShardImage = {
    ...born,
    ttlSec: Math.ceil(NOW_MS / 1_000) + 3_600,
    writeId: buildLeaseId(NOW_MS, 0.5) + 'abc',
    writeUnits: 123_456,
    acquires: 1_234_567,
    limits: born.limits.map((account) => ({ ...account, tokensMilli: -1_234_567_891, consumedMilli: 123_456_789_123 })),
    holders: new Map(Array.from({ length: holderCount }, (_, at) => holder(at))),
    onSweepList: holderCount > 0,
  };
  return buildShardItem(NAMESPACE_ID, image);
}

function holder(at: number) {
  const id = buildLeaseId(NOW_MS + at, 0.5);
  const slots = [{ name: 'slots', milli: 1_000 }];
  const text = encodeHolder({ expiresAtMs: NOW_MS + 60_000, acquiredAtMs: NOW_MS, slots, rates: null, caller: null });
  return [id, decodeHolder(id, text)] as const;
}

export interface ItemSize {
  readonly limits: number;
  readonly holders: number;
  readonly names: readonly [number, number];
  readonly item: Item;
  readonly bytes: number;
  readonly units: number;
}

export function itemSizes(): readonly ItemSize[] {
  return LIMITS.flatMap((limits) =>
    HOLDERS.flatMap((holders) =>
      NAMES.map((names) => {
        const item = bucketItem(limits, holders, names);
        const { bytes } = decodeShard(item, []);
        return { limits, holders, names, item, bytes, units: writeUnits(bytes) };
      }),
    ),
  );
}

/** A table for `docs/backends/dynamodb.md`: bytes, and write units in brackets. */
export function printItemSizes(sizes: readonly ItemSize[]): string {
  const heads = NAMES.map(([entity, resource]) => `names of ${entity} + ${resource}`);
  const lines = LIMITS.flatMap((limits) =>
    HOLDERS.map((holders) => {
      const row = sizes.filter((size) => size.limits === limits && size.holders === holders);
      return [limits, holders, ...row.map(({ bytes, units }) => `${bytes} (${units})`)];
    }),
  );
  const rows = [['limits', 'holders', ...heads], ['---', '---', ...heads.map(() => '---')], ...lines];
  return rows
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll(/ (?=-)|(?<=-) /g, '');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) console.log(printItemSizes(itemSizes()));
