import { readKey } from '../../table/attributes.js';
import { deadlineIn } from '../../../../machine-time.js';
import { buildShardKey } from '../../table/keys.js';
import { readItems } from '../../client/batches.js';
import { REQUEST_MS, type Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';
import { buildConversion, buildShardConversion, countOf } from './build-conversions.js';
import type { Conversion, ConversionContext } from './conversion.js';
import { type OldRecord, readOldRecord } from '../../schema/old-record.js';
import { withRetries } from '../../schema/retry.js';

/** One transaction has the new item and the removals. Shards beyond this are converted later, as strays. */
const MAX_SHARDS = 90;

export interface Gathered {
  readonly conversions: readonly Conversion[];
  /** Shards beyond the shard count that their bucket's first shard states. The next pass converts them. */
  readonly postponed: number;
}

/** The shards of a bucket are in different partitions. The other shards are read together with the first. */
export async function gatherConversions(
  table: Table,
  context: ConversionContext,
  groups: readonly (readonly OldRecord[])[],
  signal?: AbortSignal,
): Promise<Gathered> {
  const singles = groups.flatMap((group) => (group[0]?.key.kind === 'shard' ? group : []));
  const plain = groups.filter((group) => group[0]?.key.kind !== 'shard');
  const conversions = plain.flatMap((group) => buildConversion(context, group) ?? []);
  const shardItems = await readOtherShards(table, singles, signal);
  const buckets: { readonly met: OldRecord; readonly shards: Map<number, Item> }[] = [];
  const open = new Map<string, Map<number, Item>>();
  let postponed = 0;
  for (const met of singles) {
    const shardSet = shardsOf(met, shardItems);
    if (shardSet === 'later') postponed += 1;
    if (typeof shardSet === 'string') continue;
    // Shards without a first shard are converted together, as many as fit into one transaction.
    const bucket = keyOf(met, 0).PK;
    const others = shardSet.has(0) ? undefined : open.get(bucket);
    if (others !== undefined && others.size < MAX_SHARDS) {
      for (const [shard, item] of shardSet) others.set(shard, item);
    } else {
      const shards = new Map(shardSet);
      buckets.push({ met, shards });
      if (!shardSet.has(0)) open.set(bucket, shards);
    }
  }
  const shardConversions = buckets.flatMap(({ met, shards }) => buildShardConversion(context, met, shards) ?? []);
  return { conversions: [...conversions, ...shardConversions], postponed };
}

/**
 * The conversions of a wave have different targets: a conversion that adds to a record must see what an earlier one
 * added.
 */
export function inWaves(conversions: readonly Conversion[]): readonly (readonly Conversion[])[] {
  const waves: Conversion[][] = [];
  const counts = new Map<string, number>();
  for (const conversion of conversions) {
    const target = `${conversion.target.PK}\n${conversion.target.SK}`;
    const wave = counts.get(target) ?? 0;
    counts.set(target, wave + 1);
    (waves[wave] ??= []).push(conversion);
  }
  return waves;
}

type Shards = ReadonlyMap<string, Item>;

function shardsToRead({ key, item }: OldRecord): readonly number[] {
  if (key.kind !== 'shard') return [];
  if (key.shard > 0) return [0];
  return Array.from({ length: Math.min(countOf(item), MAX_SHARDS) - 1 }, (_, more) => more + 1);
}

async function readOtherShards(table: Table, met: readonly OldRecord[], signal?: AbortSignal): Promise<Shards> {
  const keys = met.flatMap((record) => shardsToRead(record).map((shard) => keyOf(record, shard)));
  const items = await withRetries(async () => readItems(table, keys, deadlineIn(REQUEST_MS)), signal);
  return new Map(items.flatMap((item) => (item === undefined ? [] : [[readKey(item).PK, item] as const])));
}

/** `with-first`: converted with the first shard of its bucket. `later`: converted in a pass after the first shard. */
function shardsOf(met: OldRecord, others: Shards): ReadonlyMap<number, Item> | 'with-first' | 'later' {
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
    // Skip shards that this version created.
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
