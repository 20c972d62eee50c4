import type { Amount, Holder } from '../../../core/bucket/decide.js';
import type { PortablePart } from '../../../core/bucket/portable.js';
import { parseLeaseTime } from '../../../core/identifiers.js';
import { parseInt10 } from '../../../core/int.js';

/** A holder with its exact stored text, which conditions compare. */
export interface StoredHolder extends Holder {
  readonly text: string;
}

/**
 * `{expiry}|{slots}|{rates}|{caller}`: amounts are `name=milli` with commas; rates follow a `+` where an expiry gives
 * them back; the caller is last because it may contain any character; empty parts at the end are left out. The lease id
 * contains the time of the acquire. Of a portable lease the rates are `{state}{+ or -}{taken};{ids of adjusts}`, the state as
 * one letter, and `-` where an expiry keeps what was taken.
 */
export function encodeHolder({ expiresAtMs, slots, rates, caller, portable }: Holder): string {
  const plainRates = rates === null ? '' : `+${printAmounts(rates)}`;
  const carried = portable === undefined ? plainRates : printPortable(portable, rates !== null);
  const parts = [String(expiresAtMs), printAmounts(slots), carried];
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
  const common = {
    text,
    expiresAtMs: Number(expiry),
    acquiredAtMs: parseLeaseTime(leaseId),
    slots: parseAmounts(slots),
    caller: caller.length === 0 ? null : caller.join('|'),
  };
  const portable = parsePortable(rates);
  if (portable === null) return { ...common, rates: rates.startsWith('+') ? parseAmounts(rates.slice(1)) : null };
  return { ...common, rates: rates.charAt(1) === '+' ? portable.taken : null, portable };
}

const STATES = { o: 'open', c: 'committed', r: 'rolled-back' } as const;
const PORTABLE = /^([ocr])[+-]([^;]*);(.*)$/;

function printPortable({ state, taken, adjusts }: PortablePart, refunds: boolean): string {
  return `${state.charAt(0)}${refunds ? '+' : '-'}${printAmounts(taken)};${adjusts.join(',')}`;
}

function parsePortable(text: string): PortablePart | null {
  const [, letter, taken = '', adjusts = ''] = PORTABLE.exec(text) ?? [];
  if (letter === undefined) return null;
  return {
    state: STATES[letter as keyof typeof STATES],
    taken: parseAmounts(taken),
    adjusts: adjusts === '' ? [] : adjusts.split(','),
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
