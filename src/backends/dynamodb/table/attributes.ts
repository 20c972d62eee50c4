import { InfrastructureError } from '../../../core/errors.js';
import { type Int, toInt } from '../../../core/int.js';
import type { RecordKey } from './keys.js';
import type { AttributeValue, Item } from '../client/transport.js';

export function text(value: string): AttributeValue {
  return { S: value };
}

export function number(value: Int): AttributeValue {
  return { N: String(value) };
}

/** Data of any shape is stored as JSON: DynamoDB's own maps reject empty keys and large exponents. */
export function json(value: unknown): AttributeValue {
  return { S: JSON.stringify(value) };
}

export function readText(item: Item, name: string): string | undefined {
  return item[name]?.S;
}

export function readNumber(item: Item, name: string): number | undefined {
  const value = item[name]?.N;
  return value === undefined ? undefined : Number(value);
}

/** Exact also beyond 2^53. */
export function readInt(item: Item, name: string): Int | undefined {
  const value = item[name]?.N;
  return value === undefined ? undefined : toInt(BigInt(value));
}

export function readJson(item: Item, name: string): unknown {
  const value = item[name]?.S;
  return value === undefined ? undefined : (JSON.parse(value) as unknown);
}

export function readKey(item: Item): RecordKey {
  return { PK: item['PK']?.S ?? '', SK: item['SK']?.S ?? '' };
}

/** Throws if a record lacks an attribute that every record of its kind has: this code did not write it. */
export function required<T>(value: T | undefined, item: Item, name: string): T {
  if (value !== undefined) return value;
  const { PK, SK } = readKey(item);
  throw new InfrastructureError('infrastructure.dynamodb', `The record ${PK} ${SK} has no attribute ${name}`);
}
