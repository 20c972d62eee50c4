import { ValidationError } from './errors.js';
import { exactFloor } from './int.js';
import { holdsSlots, type LimitKind } from './limit-kind.js';
import { MILLI } from './units.js';

/** What a limit adds to its rule. An ask brings these options along: no bucket stores them. */
export interface LimitOptions {
  /**
   * The share of the capacity, from 0 to 1, that an ask of a priority class must leave: `{ batch: 0.3 }`. An ask without
   * a class has no reserve.
   */
  readonly reserve?: Readonly<Record<string, number>>;
  /** Where the limit is short, it is not taken, the ask goes on, and its status says `exceeded`. */
  readonly shadow?: boolean;
  /** The share of the capacity, above 0 and up to 1, from which on statuses and events say `near`. */
  readonly warnAt?: number;
}

/** The options of a limit: undefined where it has none. */
type StoredOptions = { readonly [Name in keyof LimitOptions]-?: LimitOptions[Name] | undefined };

/** Shares have at most 3 decimals, so that a share of a whole number of tokens is a whole number of millitokens. */
const SHARE_STEPS = 1_000;

export function checkLimitOptions(name: string, options: LimitOptions): void {
  const { reserve, shadow, warnAt } = options;
  if (reserve !== undefined) checkReserve(`${name}.reserve`, reserve);
  if (shadow !== undefined && typeof shadow !== 'boolean') {
    throw new ValidationError(`${name}.shadow`, 'true or false', shadow);
  }
  if (warnAt !== undefined && (!isShare(warnAt) || warnAt === 0)) {
    throw new ValidationError(`${name}.warnAt`, 'a share from 0.001 to 1 with at most 3 decimals', warnAt);
  }
}

function checkReserve(field: string, reserve: unknown): void {
  if (typeof reserve !== 'object' || reserve === null || Array.isArray(reserve)) {
    throw new ValidationError(field, 'an object of shares by priority class', reserve);
  }
  for (const [priority, share] of Object.entries(reserve)) {
    checkPriority(`${field}.${priority}`, priority);
    checkShare(`${field}.${priority}`, share);
  }
}

const PRIORITY = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** Refuses a value that cannot be the name of a priority class. */
export function checkPriority(field: string, value: unknown): asserts value is string {
  if (typeof value === 'string' && PRIORITY.test(value)) return;
  throw new ValidationError(field, 'a priority class: a letter, then up to 63 letters, digits, "_", "." or "-"', value);
}

function isShare(share: unknown): share is number {
  return typeof share === 'number' && share >= 0 && share <= 1 && share === thousandths(share) / SHARE_STEPS;
}

function checkShare(field: string, share: unknown): void {
  if (isShare(share)) return;
  throw new ValidationError(field, 'a share from 0 to 1 with at most 3 decimals', share);
}

function thousandths(share: number): number {
  return Math.round(share * SHARE_STEPS);
}

/** The classes in the order of their names, so that equal options print alike. undefined: no class. */
export function sortedReserve(reserve: LimitOptions['reserve']): LimitOptions['reserve'] {
  const entries = Object.entries(reserve ?? {});
  if (entries.length === 0) return undefined;
  return Object.freeze(Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

/**
 * The part of a limit, in millitokens, that a share of it is. Slots are whole: half a slot that must stay is a slot that
 * must stay. 0 where there is no balance.
 */
export function shareOfCapacity(
  { kind, capacityMilli }: { readonly kind: LimitKind; readonly capacityMilli: number },
  share: number,
): number {
  if (!Number.isFinite(capacityMilli)) return 0;
  // Exact: a capacity is a whole number of tokens, at most 1e12.
  const milli = (capacityMilli / MILLI) * thousandths(share);
  return holdsSlots(kind) ? -exactFloor(-milli, MILLI) * MILLI : milli;
}

/** The options as text: `!reserve.batch=0.3!shadow!warnAt=0.8`. */
export function printOptions({ reserve, shadow, warnAt }: StoredOptions): string {
  const reserves = Object.entries(reserve ?? {}).map(([priority, share]) => `!reserve.${priority}=${share}`);
  return reserves.join('') + (shadow === true ? '!shadow' : '') + (warnAt === undefined ? '' : `!warnAt=${warnAt}`);
}

const SHARE_TEXT = /^(?:reserve\.(?<priority>[^=]+)|warnAt)=(?<share>\d(?:\.\d{1,3})?)$/;

/** Reads what `printOptions` prints, in any order. undefined: the text is malformed or names an option twice. */
export function parseOptions(text: string): LimitOptions | undefined {
  const reserve = new Map<string, number>();
  const parts = text.split('!').slice(1);
  const isShadow = parts.includes('shadow');
  let warnAt: number | undefined;
  if (parts.indexOf('shadow') !== parts.lastIndexOf('shadow')) return undefined;
  for (const part of parts) {
    if (part === 'shadow') continue;
    const { priority, share } = SHARE_TEXT.exec(part)?.groups ?? {};
    if (share === undefined) return undefined;
    if (priority === undefined ? warnAt !== undefined : reserve.has(priority)) return undefined;
    if (priority === undefined) warnAt = Number(share);
    else reserve.set(priority, Number(share));
  }
  return {
    ...(reserve.size === 0 ? {} : { reserve: Object.fromEntries(reserve) }),
    ...(isShadow ? { shadow: true } : {}),
    ...(warnAt === undefined ? {} : { warnAt }),
  };
}
