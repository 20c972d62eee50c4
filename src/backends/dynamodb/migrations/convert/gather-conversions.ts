import { readKey } from '../../table/attributes.js';
import { deadlineIn } from '../../client/deadline.js';
import { buildShardKey } from '../../table/keys.js';
import { readItems, type Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';
import { buildShardConversion, buildConversion, countOf, type ConversionContext } from './build-conversions.js';
import { readOldRecord } from '../legacy/old-record.js';
import { withRetries, REQUEST_MS } from '../retry.js';
import type { OldRecord, Conversion } from './conversion.js';

/** One transaction holds the new item and those that go. What is beyond is left behind, and found again alone. */
const MAX_SHARDS = 90;

export interface Gathered {
  readonly units: readonly Conversion[];
  /** Shards that come after the first one of their bucket, which does not know of them: the next pass has them. */
  readonly postponed: number;
}

/** Shards of a bucket stand in partitions of their own: the others are read with the first. */
export async function gatherConversions(
  table: Table,
  around: ConversionContext,
  groups: readonly (readonly OldRecord[])[],
  signal?: AbortSignal,
): Promise<Gathered> {
  const singles = groups.flatMap((group) => (group[0]?.key.kind === 'shard' ? group : []));
  const plain = groups.filter((group) => group[0]?.key.kind !== 'shard');
  const units = plain.flatMap((group) => buildConversion(around, group) ?? []);
  const families = await readFamilies(table, singles, signal);
  const buckets: { readonly met: OldRecord; readonly shards: Map<number, Item> }[] = [];
  const open = new Map<string, Map<number, Item>>();
  let postponed = 0;
  for (const met of singles) {
    const family = familyOf(met, families);
    if (family === 'later') postponed += 1;
    if (typeof family === 'string') continue;
    // Shards without the first go together, as many as one transaction holds.
    const bucket = keyOf(met, 0).PK;
    const others = family.has(0) ? undefined : open.get(bucket);
    if (others !== undefined && others.size < MAX_SHARDS) {
      for (const [shard, item] of family) others.set(shard, item);
    } else {
      const shards = new Map(family);
      buckets.push({ met, shards });
      if (!family.has(0)) open.set(bucket, shards);
    }
  }
  const shardUnits = buckets.flatMap(({ met, shards }) => buildShardConversion(around, met, shards) ?? []);
  return { units: [...units, ...shardUnits], postponed };
}

/** Units of one wave have targets of their own: what adds to a record must see what was added before it. */
export function inWaves(units: readonly Conversion[]): readonly (readonly Conversion[])[] {
  const waves: Conversion[][] = [];
  const counts = new Map<string, number>();
  for (const unit of units) {
    const target = `${unit.target.PK}\n${unit.target.SK}`;
    const wave = counts.get(target) ?? 0;
    counts.set(target, wave + 1);
    (waves[wave] ??= []).push(unit);
  }
  return waves;
}

type Shards = ReadonlyMap<string, Item>;

function shardsToRead({ key, item }: OldRecord): readonly number[] {
  if (key.kind !== 'shard') return [];
  if (key.shard > 0) return [0];
  return Array.from({ length: Math.min(countOf(item), MAX_SHARDS) - 1 }, (_, more) => more + 1);
}

async function readFamilies(table: Table, met: readonly OldRecord[], signal?: AbortSignal): Promise<Shards> {
  const keys = met.flatMap((record) => shardsToRead(record).map((shard) => keyOf(record, shard)));
  const items = await withRetries(async () => readItems(table, keys, deadlineIn(REQUEST_MS)), signal);
  return new Map(items.flatMap((item) => (item === undefined ? [] : [[readKey(item).PK, item] as const])));
}

/** `with-first`: it goes with the first shard of its bucket. `later`: it comes after that one. */
function familyOf(met: OldRecord, others: Shards): ReadonlyMap<number, Item> | 'with-first' | 'later' {
  if (met.key.kind !== 'shard') return 'with-first';
  const { shard } = met.key;
  const own = [[shard, met.item] as const];
  const first = others.get(keyOf(met, 0).PK);
  if (shard > 0) {
    if (first === undefined || readOldRecord(first) === null) return new Map(own);
    return shard < reachOf(first) ? 'with-first' : 'later';
  }
  const more = shardsToRead(met).flatMap((number) => {
    const item = others.get(keyOf(met, number).PK);
    // One that this version made is not to be moved.
    return item === undefined || readOldRecord(item) === null ? [] : [[number, item] as const];
  });
  return new Map([...own, ...more]);
}

function reachOf(first: Item): number {
  return Math.min(countOf(first), MAX_SHARDS);
}

function keyOf({ key }: OldRecord, shard: number): { readonly PK: string; readonly SK: string } {
  if (key.kind !== 'shard' || key.ns === null) return { PK: '', SK: '' };
  return buildShardKey(key.ns, { entityId: key.entityId, resource: key.resource, shard });
}
