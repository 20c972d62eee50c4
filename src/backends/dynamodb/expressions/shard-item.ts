import { parsePlainResource } from '../../../core/identifiers.js';
import { buildShardKey, index, keyItem, type ShardKey, sweepKeys } from '../table/keys.js';
import { encodeShard, type ShardImage } from '../table/items.js';
import type { Item } from '../client/transport.js';

/** The item with its key and its index keys. */
export function buildShardItem(ns: string, image: ShardImage): Item {
  return {
    ...keyItem(buildShardKey(ns, image.key)),
    ...encodeShard(image),
    ...(image.onSweepList ? sweepItem(ns, image.key) : {}),
    ...indexKeys(ns, image.key),
  };
}

function indexKeys(ns: string, { entityId, resource, shard }: ShardKey): Item {
  return {
    GSI2PK: { S: index.resourceOf(ns, parsePlainResource(resource), entityId) },
    GSI2SK: { S: index.bucketOfResource(entityId, resource, shard) },
    GSI3PK: { S: index.bucketsOfEntity(ns, entityId) },
    GSI3SK: { S: index.bucketOfEntity(resource, shard) },
    GSI4PK: { S: index.allOf(ns, entityId) },
    GSI4SK: { S: buildShardKey(ns, { entityId, resource, shard }).PK },
  };
}

function sweepItem(ns: string, key: ShardKey): Item {
  const { GSI1PK, GSI1SK } = sweepKeys(ns, key);
  return { GSI1PK: { S: GSI1PK }, GSI1SK: { S: GSI1SK } };
}
