import { ON_UNAVAILABLE, type OnUnavailable } from '../../core/config/config.js';
import type { Amount } from '../../core/bucket/decide.js';
import { ValidationError } from '../../core/errors.js';
import { checkKnownFields } from '../../core/known-fields.js';
import { checkLimits, checkWhole, type Limit } from '../../core/limit.js';
import { MAX_AMOUNT, MILLI } from '../../core/units.js';
import { checkLeaseTtl, checkOneOf } from '../options.js';

/** Amounts in whole tokens, by the name of the limit. */
export type Amounts<L extends string = string> = { readonly [Name in L]?: number };

export interface AcquireRequest<L extends string = string> {
  readonly entityId: string;
  readonly resource: string;
  /** What to take. A limit that is not named takes its default cost, or nothing. 0 asks only that there is no debt. */
  readonly consume?: Amounts<L>;
  /** These limits instead of the configured ones, for the entity's own level, in a bucket of their own. */
  readonly limits?: readonly Limit[];
  /** Keeps a holder for this long, also without concurrent limits: at least 5 000. */
  readonly leaseTtlMs?: number;
  /** Waits in line for up to `timeoutMs` instead of being denied. */
  readonly wait?: { readonly timeoutMs: number };
  /** Ends the wait or the call; what was taken meanwhile is given back. */
  readonly signal?: AbortSignal;
  /** What to do while the store is out, for this call. */
  readonly onUnavailable?: OnUnavailable;
  /** All levels in one transaction, where a store would otherwise write them one by one. */
  readonly atomic?: boolean;
}

const MAX_WAIT_MS = 86_400_000;

/** `onThrow` belongs to `run`, which takes it beside the request. */
const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  'entityId',
  'resource',
  'consume',
  'limits',
  'leaseTtlMs',
  'wait',
  'signal',
  'onUnavailable',
  'atomic',
  'onThrow',
] satisfies (keyof AcquireRequest | 'onThrow')[]);

const WAIT_FIELDS: ReadonlySet<string> = new Set(['timeoutMs']);

/** Refuses bad input before anything is read or written. Names are checked where they are first looked up. */
export function checkRequest(request: AcquireRequest): void {
  if (typeof request !== 'object' || request === null) throw new ValidationError('request', 'an object', request);
  checkKnownFields('request', request, REQUEST_FIELDS);
  if (request.limits !== undefined) checkOwnLimits(request.limits);
  if (request.leaseTtlMs !== undefined) checkLeaseTtl(request.leaseTtlMs);
  if (request.wait !== undefined) checkWait(request.wait);
  if (request.signal !== undefined && !(request.signal instanceof AbortSignal)) {
    throw new ValidationError('signal', 'an AbortSignal', request.signal);
  }
  if (request.atomic !== undefined && typeof request.atomic !== 'boolean') {
    throw new ValidationError('atomic', 'true or false', request.atomic);
  }
  if (request.onUnavailable !== undefined) checkOneOf('onUnavailable', request.onUnavailable, ON_UNAVAILABLE);
}

function checkWait(wait: unknown): void {
  if (typeof wait !== 'object' || wait === null) throw new ValidationError('wait', 'an object with timeoutMs', wait);
  checkKnownFields('wait', wait, WAIT_FIELDS);
  checkWhole('wait.timeoutMs', (wait as { readonly timeoutMs?: unknown }).timeoutMs, 0, MAX_WAIT_MS);
}

function checkOwnLimits(limits: unknown): void {
  checkLimits('limits', limits);
  if (limits.length === 0) throw new ValidationError('limits', 'at least one limit, or left out', limits);
}

/** Amounts as a list in millitokens. Whole numbers from `least` to 1e12; `undefined` is a mistake, not an absence. */
export function readAmounts(field: string, amounts: Amounts | undefined, least: number): readonly Amount[] {
  if (amounts === undefined) return NOTHING;
  if (typeof amounts !== 'object' || amounts === null || Array.isArray(amounts)) {
    throw new ValidationError(field, 'an object of amounts by limit name', amounts);
  }
  const names = Object.keys(amounts);
  const list = new Array<Amount>(names.length);
  for (let at = 0; at < names.length; at++) {
    const name = names[at] as string;
    const tokens: unknown = amounts[name];
    if (!Number.isSafeInteger(tokens) || (tokens as number) < least || (tokens as number) > MAX_AMOUNT) {
      throw new ValidationError(`${field}.${name}`, `a whole number from ${least} to ${MAX_AMOUNT}`, tokens);
    }
    list[at] = { name, milli: (tokens as number) * MILLI };
  }
  return list;
}

const NOTHING: readonly Amount[] = [];
