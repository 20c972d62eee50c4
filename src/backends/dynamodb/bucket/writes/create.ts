import type { ShardImage } from '../../table/items.js';
import type { Creation } from './record-write.js';

/**
 * Creates a shard as the image describes it: a new bucket, full less what is taken, or the new shard of a split. Never
 * replaces an item that exists: the refused write returns that item.
 * Writes: the whole item.   Condition: the item does not exist.
 * On success: nothing.   On failure: the record.   Cost: 1 write unit per started KB, and 1 for each of three indexes;
 * one more with a holder.
 */
export function buildCreate(ns: string, image: ShardImage): Creation {
  return { kind: 'create', ns, image };
}
