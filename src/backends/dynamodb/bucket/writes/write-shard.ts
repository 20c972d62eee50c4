import { ATTRIBUTE, printVersion, type ShardImage } from '../../table/items.js';
import type { HolderChange, LimitChange, ShardWrite } from '../shard-write.js';
import { buildShardKey, sweepKeys } from '../../table/keys.js';
import { raiseTtl, type RecordUpdate, startShardUpdate, type Update, type WriteIds } from './record-write.js';

/**
 * Takes, debits, refunds, holds, extends, releases and reclaims, in any combination: one write for a whole group.
 * Writes: per limit ADD tk (room) or SET tk (full), ADD tc; ADD ac, un, wc; SET or REMOVE h; SET w; cv, ttl, GSI1 as needed.
 * Condition: rf = :rf; pz does not exist or pz <= :now, if it takes; per limit the bounds of its form; per holder h = :seen, or h does not exist; cv = :seen if adopted; ttl <= :ttl
 * if it is set; w <> :id.
 * On success: ALL_NEW.   On failure: ALL_OLD, absent when the item does not exist.   Cost: 1 WCU per started KB either way.
 */
export function buildShardWrite(ns: string, image: ShardImage, write: ShardWrite, ids: WriteIds): Update {
  const update = startShardUpdate(image, ids)
    .add(ATTRIBUTE.acquires, write.acquires)
    .add(ATTRIBUTE.expired, write.expired);
  if (write.takesAtMs !== undefined) update.requireAbsentOrAtMost(ATTRIBUTE.pauseEnd, write.takesAtMs);
  for (const limit of write.limits) changeLimit(update, limit);
  for (const holder of write.holders) changeHolder(update, holder);
  if (!image.onSweepList && write.holders.some(({ kind }) => kind === 'add')) {
    for (const [attribute, value] of Object.entries(sweepKeys(ns, image.key))) update.set(attribute, value);
  }
  if (write.adopts !== null) {
    // If two writers adopt a version at once, the older version must not be written last.
    update
      .requireEqual(ATTRIBUTE.version, printVersion(image.version))
      .set(ATTRIBUTE.version, printVersion(write.adopts));
  }
  if (write.ttlSec === null) update.remove(ATTRIBUTE.ttl);
  else if (write.ttlSec !== undefined) raiseTtl(update, write.ttlSec);
  return update.of(buildShardKey(ns, image.key));
}

function changeLimit(update: RecordUpdate, { name, write, consumedMilli }: LimitChange): void {
  const tokens = ATTRIBUTE.tokens(name);
  if (write.write === 'set') {
    update.requireWithin(tokens, write.atLeastMilli, null).set(tokens, write.tokensMilli);
  } else {
    update.requireWithin(tokens, write.atLeastMilli, write.atMostMilli).add(tokens, write.deltaMilli);
  }
  update.add(ATTRIBUTE.consumed(name), consumedMilli);
}

function changeHolder(update: RecordUpdate, change: HolderChange): void {
  const attribute = ATTRIBUTE.holder(change.leaseId);
  switch (change.kind) {
    case 'add':
      update.requireAbsent(attribute).set(attribute, change.text);
      break;
    case 'replace':
      update.requireEqual(attribute, change.seen).set(attribute, change.text);
      break;
    case 'remove':
      update.requireEqual(attribute, change.seen).remove(attribute);
      break;
    case 'absent':
      update.requireAbsent(attribute);
      break;
  }
}
