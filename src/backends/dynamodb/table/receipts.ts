import type { ChargeReceipt } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Item } from '../client/transport.js';
import { buildReceiptKey, index, keyItem } from './keys.js';
import { number, readNumber, readText, text } from './attributes.js';

const CONTENT = 'c';
const TTL = 'ttl';

/** The receipt of a charge: `endMs` is a whole second. The index lists it for the purge of its namespace. */
export function encodeReceipt(ns: string, receipt: ChargeReceipt, endMs: EpochMs): Item {
  const key = buildReceiptKey(ns, receipt);
  return {
    ...keyItem(key),
    [CONTENT]: text(receipt.content),
    [TTL]: number(endMs / 1_000),
    GSI4PK: text(index.allOf(ns, receipt.entityId)),
    GSI4SK: text(key.PK),
  };
}

/** The content of the receipt; null once it has ended: DynamoDB may delete it days later. */
export function decodeReceipt(item: Item | undefined, nowMs: EpochMs): string | null {
  if (item === undefined || (readNumber(item, TTL) ?? 0) * 1_000 <= nowMs) return null;
  return readText(item, CONTENT) ?? '';
}

/** A receipt that exists refuses the transaction, unless it has ended. */
export function receiptCondition(nowMs: EpochMs) {
  return {
    ConditionExpression: 'attribute_not_exists(PK) OR #ttl <= :now',
    ExpressionAttributeNames: { '#ttl': TTL },
    ExpressionAttributeValues: { ':now': number(Math.floor(nowMs / 1_000)) },
  };
}
