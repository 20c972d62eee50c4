import { ValidationError } from '../errors.js';
import { type EpochMs, MILLI } from '../units.js';
import type { Amount } from './decide.js';

/** How long a charge or credit with an id counts once. */
const RECEIPT_LIFE_MS = 86_400_000;

const RECEIPT_ID = /^[!-"$-~]{1,128}$/;

/** The end of a receipt that is written now. In whole seconds, because the ttl of DynamoDB has no milliseconds. */
export function receiptEnd(nowMs: EpochMs): EpochMs {
  return Math.ceil((nowMs + RECEIPT_LIFE_MS) / 1_000) * 1_000;
}

/** What a receipt says was counted: the same for the same amounts in any order. */
export function describeCharge(kind: 'charge' | 'credit', amounts: readonly Amount[]): string {
  const parts = amounts.map(({ name, milli }) => `${name}=${Number(milli) / MILLI}`);
  return `${kind} ${parts.toSorted().join(' ')}`;
}

export function checkReceiptId(value: unknown): asserts value is string {
  if (typeof value === 'string' && RECEIPT_ID.test(value)) return;
  throw new ValidationError('id', '1 to 128 printable ASCII characters without "#" or space', value);
}
