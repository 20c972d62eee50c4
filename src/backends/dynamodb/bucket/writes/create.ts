import type { PutItemInput } from '@aws-sdk/client-dynamodb';
import { parsePlainResource } from '../../../../core/identifiers.js';
import { encodeShard, type ShardImage } from '../../table/items.js';
import { index, type ShardKey } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import { keyOf, sweepKeys, type Target } from './shard-update.js';

/**
 * Creates a bucket: full, less what is taken. Never replaces a bucket that exists: the refused write returns it.
 * Writes: the whole item.   Condition: the item does not exist.
 * On success: nothing.   On failure: ALL_OLD.   Cost: 1 WCU per started KB, and 1 for each of three indexes; one more with a holder.
 */
export function buildCreate({ tableName, ns }: Target, image: ShardImage): PutItemInput {
  return {
    TableName: tableName,
    Item: buildShardItem(ns, image),
    ConditionExpression: 'attribute_not_exists(PK)',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

/** The item with its key and its index keys. */
export function buildShardItem(ns: string, image: ShardImage): Item {
  return {
    ...keyOf(ns, image.key),
    ...encodeShard(image),
    ...(image.onSweepList ? sweepKeys(ns, image.key) : {}),
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
    GSI4SK: { S: keyOf(ns, { entityId, resource, shard })['PK']?.S ?? '' },
  };
}
