import type { Amount, Holder } from '../../../core/bucket/decide.js';
import type { ParentAmount, PortablePart } from '../../../core/bucket/portable.js';
import { parseLeaseTime } from '../../../core/identifiers.js';
import { parseInt10 } from '../../../core/int.js';

/** A holder with its exact stored text, which conditions compare. */
export interface StoredHolder extends Holder {
  readonly text: string;
}

/**
 * `{expiry}|{slots}|{rates}|{caller}`: amounts are `name=milli` with commas; rates follow a `+` where an expiry gives
 * them back; the caller is last because it may contain any character; empty parts at the end are left out. The lease id
 * contains the time of the acquire. Of a portable lease the rates are
 * `{state}{step}{+ or -}{taken};{ids of adjusts};{amounts for the parents}`: the state is one letter (`f`: open, and
 * its slots are free), a step of 0 and missing amounts are left out, and `-` stands where an expiry keeps what was
 * taken. An amount for the parents has a `d` before its number if it is a difference.
 */
export function encodeHolder({ expiresAtMs, slots, rates, caller, portable }: Holder): string {
  const plainRates = rates === null ? '' : `+${printAmounts(rates)}`;
  const carried = portable === undefined ? plainRates : printPortable(portable, rates !== null);
  const held = printAmounts(slots);
  if (caller !== null) return `${expiresAtMs}|${held}|${carried}|${caller}`;
  if (carried !== '') return `${expiresAtMs}|${held}|${carried}`;
  return held === '' ? String(expiresAtMs) : `${expiresAtMs}|${held}`;
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
  // Every acquire that holds slots has its holder parsed, so the parts are cut without a list of them.
  const [expiryEnd, slotsEnd, ratesEnd] = barsIn(text);
  const expiresAtMs = Number(text.slice(0, expiryEnd));
  const acquiredAtMs = parseLeaseTime(leaseId);
  const slots = parseAmounts(text.slice(expiryEnd + 1, slotsEnd));
  const carried = text.slice(slotsEnd + 1, ratesEnd);
  const caller = ratesEnd < text.length ? text.slice(ratesEnd + 1) : null;
  if (carried === '' || carried.startsWith('+')) {
    const rates = carried === '' ? null : parseAmounts(carried.slice(1));
    return { text, expiresAtMs, acquiredAtMs, slots, caller, rates };
  }
  const parsed = parsePortable(carried);
  if (parsed === null) return { text, expiresAtMs, acquiredAtMs, slots, caller, rates: null };
  const { refunds, ...portable } = parsed;
  return { text, expiresAtMs, acquiredAtMs, slots, caller, rates: refunds ? portable.taken : null, portable };
}

/** The positions of the first three bars; the length of the text where there are fewer. */
function barsIn(text: string): readonly [number, number, number] {
  const first = barFrom(text, 0);
  const second = barFrom(text, first + 1);
  return [first, second, barFrom(text, second + 1)];
}

function barFrom(text: string, start: number): number {
  const at = text.indexOf('|', start);
  return at < 0 ? text.length : at;
}

const STATES = { o: 'open', f: 'open', c: 'committed', r: 'rolled-back' } as const;
const PORTABLE = /^([ofcr])(\d*)([+-])([^;]*);([^;]*)(?:;(.*))?$/;

function printPortable({ state, taken, adjusts, step, released, forParents }: PortablePart, refunds: boolean): string {
  const letter = released === true && state === 'open' ? 'f' : state.charAt(0);
  const others = forParents === undefined ? '' : `;${forParents.map(printForParents).join(',')}`;
  return `${letter}${step ?? ''}${refunds ? '+' : '-'}${printAmounts(taken)};${adjusts.join(',')}${others}`;
}

function parsePortable(text: string): (PortablePart & { readonly refunds: boolean }) | null {
  const [, letter, step = '', sign, taken = '', adjusts = '', forParents] = PORTABLE.exec(text) ?? [];
  if (letter === undefined) return null;
  return {
    refunds: sign === '+',
    state: STATES[letter as keyof typeof STATES],
    taken: parseAmounts(taken),
    adjusts: adjusts === '' ? [] : adjusts.split(','),
    ...(step === '' ? {} : { step: Number(step) }),
    ...(letter === 'f' ? { released: true } : {}),
    ...(forParents === undefined ? {} : { forParents: parseForParents(forParents) }),
  };
}

function printForParents({ name, milli, isTotal }: ParentAmount): string {
  return `${name}=${isTotal ? '' : 'd'}${milli}`;
}

function parseForParents(text: string): readonly ParentAmount[] {
  if (text === '') return [];
  return text.split(',').map((part) => {
    const [name = '', number = ''] = part.split('=');
    const isTotal = !number.startsWith('d');
    return { name, milli: parseInt10(isTotal ? number : number.slice(1)), isTotal };
  });
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
