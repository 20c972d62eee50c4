import type { Limit } from '../../../core/limit.js';
import { decodeHolder, decodeShard, encodeHolder, encodeShard, type ShardImage } from '../table/items.js';
import type { Item } from '../client/transport.js';

const KEYS = /^(?:[PS]K|GSI[1-4][PS]K)$/;
/** The counters of limits that were removed, or that are concurrent now. */
const OLD_COUNTER = /^b_.+_tc$/;
const WHOLE = /^-?\d+$/;
const WRITE_ID = /^[0-9A-Za-z_~]{8,}$/;
/** Counters may be absent while they are 0. */
const COUNTER = /^(?:wc|ac|un|b_.+_tc)$/;

/**
 * Decodes a bucket item, and throws RangeError unless this version could have written every attribute: the reconciler
 * must not repair what it does not understand.
 */
export function decodeStrictly(item: Item, known: readonly Limit[] = []): ShardImage {
  const image = decodeShard(item, known);
  const { key, shardCount, writeId, holders } = image;
  if (!Number.isInteger(Math.log2(shardCount)) || key.shard >= shardCount) {
    throw new RangeError(`it is shard ${key.shard} of ${shardCount}`);
  }
  if (!WRITE_ID.test(writeId)) throw new RangeError('its write id is damaged');
  for (const [leaseId, { text }] of holders) {
    if (encodeHolder(decodeHolder(leaseId, text)) !== text) throw new RangeError(`its holder h_${leaseId} is damaged`);
  }
  compare(item, encodeShard(image));
  return image;
}

/** Every attribute must be understood. */
function compare(item: Item, understood: Item): void {
  for (const [name, value] of Object.entries(item)) {
    if (KEYS.test(name)) continue;
    const expected = understood[name];
    const isExpected =
      expected === undefined
        ? OLD_COUNTER.test(name) && value.S === undefined
        : expected.N === value.N && expected.S === value.S;
    if (!isExpected || !(value.S !== undefined || WHOLE.test(value.N ?? ''))) throw unknown(name);
  }
  for (const name in understood) {
    if (item[name] === undefined && !COUNTER.test(name)) throw new RangeError(`it has no attribute ${name}`);
  }
}

function unknown(name: string): RangeError {
  return new RangeError(`this version does not understand its attribute ${name}`);
}
