import type { Pause } from '../../../../core/pause.js';
import { ATTRIBUTE } from '../../table/items.js';
import type { ShardKey } from '../../table/keys.js';
import { RecordUpdate, type Update } from './record-write.js';

/**
 * Pauses one shard, or ends its pause (null). Needs no image: it lands on a shard of any content, however busy, and may
 * be sent again. It sets w, so that a merge that was planned on an older image is refused. A paused shard has no ttl:
 * its expiry would end the pause. The first write after the pause adds the ttl again.
 * Writes: SET pz, pzr, w, or REMOVE pz, pzr; ADD wc; REMOVE ttl.   Condition: the shard exists; w <> :id.
 * On success: the new record, which shows the shard count.   On failure: the record, null if there is none.   Cost: 1
 * write unit per started KB.
 */
export function buildPause(ns: string, key: ShardKey, pause: Pause | null, writeId: string): Update {
  const update = new RecordUpdate()
    .requireWithin(ATTRIBUTE.base, 0, null)
    .requireOther(ATTRIBUTE.writeId, writeId)
    .set(ATTRIBUTE.writeId, writeId)
    .add(ATTRIBUTE.writeUnits, 1);
  if (pause === null) update.remove(ATTRIBUTE.pauseEnd).remove(ATTRIBUTE.pauseReason);
  else setPause(update, pause).remove(ATTRIBUTE.ttl);
  return update.of(ns, key);
}

export function setPause(update: RecordUpdate, { endMs, reason }: Pause): RecordUpdate {
  return update.set(ATTRIBUTE.pauseEnd, endMs).set(ATTRIBUTE.pauseReason, reason);
}
