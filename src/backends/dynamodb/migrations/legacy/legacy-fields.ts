import { ValidationError } from '../../../../core/errors.js';
import { type Int, toInt } from '../../../../core/int.js';
import { Limit } from '../../../../core/limit.js';
import { type EpochMs, MILLI } from '../../../../core/units.js';
import { readText } from '../../table/attributes.js';
import type { AttributeValue, Item } from '../../client/transport.js';
import { Unmappable } from '../unmappable.js';

/** The attributes of a record. The first layout kept them in a map. */
export function fieldsOf(item: Item): Item {
  const data = item['data']?.M;
  return data === undefined ? item : { ...data, ...item };
}

export function requireWhole(fields: Item, name: string): Int {
  const value = readWhole(fields, name);
  if (value === undefined) throw new Unmappable(`it has no ${name}`);
  return value;
}

export function readWhole(fields: Item, name: string): Int | undefined {
  const text = fields[name]?.N;
  if (text === undefined) return undefined;
  if (!/^-?\d+$/.test(text)) throw new Unmappable(`its ${name} is not an integer: ${text}`);
  return toInt(BigInt(text));
}

/** ISO texts, or milliseconds as a number. */
export function readInstant(fields: Item, name: string): EpochMs | undefined {
  const value = fields[name];
  const ms = value?.N === undefined ? Date.parse(value?.S ?? '') : Number(value.N);
  return Number.isFinite(ms) ? ms : undefined;
}

/** Texts that may be stored as DynamoDB's null. */
export function readOptionalText(fields: Item, name: string): string | null {
  return readText(fields, name) ?? null;
}

/** Converts DynamoDB's maps and lists to plain data. */
export function plainOf(value: AttributeValue | undefined): unknown {
  if (value?.M !== undefined) {
    return Object.fromEntries(Object.entries(value.M).map(([key, item]) => [key, plainOf(item)]));
  }
  if (value?.L !== undefined) return value.L.map(plainOf);
  if (value?.N !== undefined) return Number(value.N);
  if (value?.SS !== undefined || value?.NS !== undefined) return value.SS ?? value.NS?.map(Number);
  return value?.S ?? value?.BOOL ?? null;
}

/** Builds a limit from stored numbers. `capacity` is the old burst if there was one. */
export function limitOf(
  name: string,
  rule: { capacity: number; refillAmount: number; refillPeriodMs: number; shadow?: boolean },
): Limit {
  return mappable(() => Limit.custom(name, rule));
}

export function limitOfMilli(name: string, capacityMilli: Int, refillMilli: Int, refillPeriodMs: Int): Limit {
  const capacity = Number(capacityMilli) / MILLI;
  const refillAmount = Number(refillMilli) / MILLI;
  return limitOf(name, { capacity, refillAmount, refillPeriodMs: Number(refillPeriodMs) });
}

/** Turns a validation error into `Unmappable`. */
export function mappable<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof ValidationError) throw new Unmappable(error.message);
    throw error;
  }
}
