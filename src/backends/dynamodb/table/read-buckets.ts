import type { LevelRef } from '../../../backend.js';
import type { Limit } from '../../../core/limit.js';
import type { Deadline } from '../../../machine-time.js';
import { readItems } from '../client/batches.js';
import type { Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { isForeign, requireOwn } from './foreign-record.js';
import { decodeShard, type ShardImage } from './items.js';
import { buildShardKey } from './keys.js';

type Decode = (item: Item, known: readonly Limit[]) => ShardImage;

/**
 * Reads all shards of each bucket, in the order of the references. An empty list: the bucket does not exist. `own-only`
 * skips foreign buckets, which a client of an older layout wrote.
 */
export async function readBuckets(
  table: Table,
  ns: string,
  refs: readonly { readonly entityId: string; readonly resource: string; readonly limits?: LevelRef['limits'] }[],
  deadline: Deadline,
  decode: Decode | 'own-only' = (item, known) => decodeShard(requireOwn(table, item), known),
): Promise<readonly (readonly ShardImage[])[]> {
  const first = await readItems(
    table,
    refs.map(({ entityId, resource }) => buildShardKey(ns, { entityId, resource, shard: 0 })),
    deadline,
  );
  return Promise.all(
    refs.map(async ({ entityId, resource, limits = [] }, at) => {
      const item = first[at];
      if (item === undefined || (decode === 'own-only' && isForeign(item))) return [];
      const read = decode === 'own-only' ? decodeShard : decode;
      const shards = [read(item, limits)];
      // A shard may have been split further than its parent shard.
      for (let next = 1, count = shards[0]?.shardCount ?? 1; next < count;) {
        const wanted = Array.from({ length: count - next }, (_, more) => next + more);
        const keys = wanted.map((shard) => buildShardKey(ns, { entityId, resource, shard }));
        const found = (await readItems(table, keys, deadline)).filter((other) => other !== undefined);
        shards.push(...found.map((other) => read(other, limits)));
        next = count;
        count = Math.max(count, ...shards.map(({ shardCount }) => shardCount));
      }
      return shards;
    }),
  );
}
