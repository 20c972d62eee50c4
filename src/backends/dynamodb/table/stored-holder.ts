import type { Amount, Holder } from '../../../core/bucket/decide.js';
import { parseLeaseTime } from '../../../core/identifiers.js';
import { parseInt10 } from '../../../core/int.js';

/** A holder with its exact stored text, which conditions compare. */
export interface StoredHolder extends Holder {
  readonly text: string;
}

/**
 * `{expiry}|{slots}|{rates}|{caller}`: amounts are `name=milli` with commas; rates follow a `+` where an expiry gives
 * them back; the caller is last because it may contain any character; empty parts at the end are left out. The lease id
 * contains the time of the acquire.
 */
export function encodeHolder({ expiresAtMs, slots, rates, caller }: Holder): string {
  const parts = [String(expiresAtMs), printAmounts(slots), rates === null ? '' : `+${printAmounts(rates)}`];
  if (caller !== null) return [...parts, caller].join('|');
  return parts.join('|').replace(/\|+$/, '');
}

/** Cached: every answer has all holders of its bucket, and most were in the answer before it. */
const DECODED = new Map<string, StoredHolder>();
const MAX_DECODED = 5_000;

export function decodeHolder(leaseId: string, text: string): StoredHolder {
  const known = DECODED.get(leaseId);
  if (known?.text === text) return known;
  if (DECODED.size >= MAX_DECODED) DECODED.clear();
  const holder = parseHolder(leaseId, text);
  DECODED.set(leaseId, holder);
  return holder;
}

function parseHolder(leaseId: string, text: string): StoredHolder {
  const [expiry = '0', slots = '', rates = '', ...caller] = text.split('|');
  return {
    text,
    expiresAtMs: Number(expiry),
    acquiredAtMs: parseLeaseTime(leaseId),
    slots: parseAmounts(slots),
    rates: rates.startsWith('+') ? parseAmounts(rates.slice(1)) : null,
    caller: caller.length === 0 ? null : caller.join('|'),
  };
}

function printAmounts(amounts: readonly Amount[]): string {
  return amounts.map(({ name, milli }) => `${name}=${milli}`).join(',');
}

function parseAmounts(text: string): readonly Amount[] {
  if (text === '') return [];
  return text.split(',').map((part) => {
    const cut = part.lastIndexOf('=');
    return { name: part.slice(0, cut), milli: parseInt10(part.slice(cut + 1)) };
  });
}
