import { buildLeaseId, encodeRandom } from '../../../../core/identifiers.js';
import type { EpochMs } from '../../../../core/units.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import { RecordUpdate } from './record-write.js';

const BYTES_PER_UNIT = 1024;

/** The write units that DynamoDB bills for an item of this size. */
export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_UNIT));
}

/** The time of the write and 36 random bits. Usage is counted in the window of this time. */
export function createWriteId(nowMs: EpochMs, random: () => number): string {
  return buildLeaseId(nowMs, random()) + encodeRandom(random());
}

/**
 * The id of a write, and the ids of earlier writes that may have landed. The write must be refused if one of them did.
 */
export interface WriteIds {
  readonly own: string;
  readonly unanswered: readonly string[];
}

/**
 * Starts a write to an existing shard: under the base of the image, so that the rate parameters are those of the image,
 * and never twice under one id. Counts its own write units.
 */
export function startShardUpdate(image: ShardImage, { own, unanswered }: WriteIds): RecordUpdate {
  const update = new RecordUpdate()
    .requireEqual(ATTRIBUTE.base, image.baseMs)
    .set(ATTRIBUTE.writeId, own)
    .add(ATTRIBUTE.writeUnits, writeUnits(image.bytes));
  for (const id of [own, ...unanswered]) update.requireOther(ATTRIBUTE.writeId, id);
  return update;
}

/** Never lowers the ttl, and adds none: a debt or a holder that the image lacks may need a longer one. */
export function raiseTtl(update: RecordUpdate, ttlSec: number): void {
  update.requireWithin(ATTRIBUTE.ttl, null, ttlSec).set(ATTRIBUTE.ttl, ttlSec);
}
