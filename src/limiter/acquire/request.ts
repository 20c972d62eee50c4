import { ON_UNAVAILABLE, type OnUnavailable } from '../../core/config/config.js';
import type { Amount } from '../../core/bucket/decide.js';
import { ValidationError } from '../../core/errors.js';
import { checkKnownFields } from '../../core/known-fields.js';
import { checkLimits, checkWhole, type Limit } from '../../core/limit.js';
import { checkPriority } from '../../core/limit-options.js';
import { MAX_AMOUNT, MILLI } from '../../core/units.js';
import { checkLeaseTtl, checkOneOf } from '../options.js';

/** Amounts in whole tokens, by the name of the limit. */
export type Amounts<L extends string = string> = { readonly [Name in L]?: number };

/** What `acquire`, `tryAcquire`, `run`, `peek` and `timeUntilAvailable` ask for. */
export interface AcquireRequest<L extends string = string> {
  /** Who spends: a user, an API key, a project. */
  readonly entityId: string;
  /** What is spent on: a model, a route, a vendor. */
  readonly resource: string;
  /** The amounts to take. A limit that is not named takes its default cost, or nothing. An amount of 0 is denied only in debt. */
  readonly consume?: Amounts<L>;
  /**
   * Replaces the configured limits at the entity's own level. They have a bucket of their own, which is shared by the calls
   * with the same entity, resource and limits.
   */
  readonly limits?: readonly Limit[];
  /** Creates a holder that expires after this time, also without concurrent limits. From 5,000 to 604,800,000 (7 days). */
  readonly leaseTtlMs?: number;
  /**
   * Creates a holder at every level, in which the state of the lease is kept until its expiry: `lease.token()` then gives
   * a text with which any process can continue the lease, and its operations can be repeated.
   * `held`: only if the lease has a holder anyway, for its slots or its `leaseTtlMs`.
   */
  readonly portable?: boolean | 'held';
  /**
   * The priority class. The ask is granted only if the reserves that the limits have against this class stay afterwards.
   * Left out: no reserve. A limit of the entity or of its parents must name the class.
   */
  readonly priority?: string;
  /**
   * The one limit of `consume` that may be cut: it takes what there is, up to the amount of `consume` and at least 1, and the
   * other limits stay whole. `lease.consumed` says how much it took.
   */
  readonly atMost?: L;
  /** Waits for up to `timeoutMs` instead of being denied. Denied at once if `maxWaiting` calls wait in the same line. */
  readonly wait?: {
    /** How long the call may wait. At most 86,400,000 (a day). */
    readonly timeoutMs: number;
    /** How many calls may wait in the same line. Default: any number. */
    readonly maxWaiting?: number;
  };
  /** Ends the wait or the call. What was taken meanwhile is given back. */
  readonly signal?: AbortSignal;
  /** The outage policy of this call. */
  readonly onUnavailable?: OnUnavailable;
  /** Writes all levels in one transaction, where a store would otherwise write them one by one. */
  readonly atomic?: boolean;
}

const MAX_WAIT_MS = 86_400_000;

/** Includes `onThrow`, which `run` accepts in the same object. */
const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  'entityId',
  'resource',
  'consume',
  'limits',
  'leaseTtlMs',
  'portable',
  'priority',
  'atMost',
  'wait',
  'signal',
  'onUnavailable',
  'atomic',
  'onThrow',
] satisfies (keyof AcquireRequest | 'onThrow')[]);

const WAIT_FIELDS: ReadonlySet<string> = new Set(['timeoutMs', 'maxWaiting']);

/** Refuses bad input before anything is read or written. Entity and resource are checked at their first look-up. */
export function checkRequest(request: AcquireRequest): void {
  if (typeof request !== 'object' || request === null) throw new ValidationError('request', 'an object', request);
  if (!hasOnlyUsualFields(request)) checkKnownFields('request', request, REQUEST_FIELDS);
  if (request.limits !== undefined) checkOwnLimits(request.limits);
  if (request.leaseTtlMs !== undefined) checkLeaseTtl(request.leaseTtlMs);
  if (request.priority !== undefined) checkPriority('priority', request.priority);
  if (request.atMost !== undefined) checkAtMost(request.atMost, request.consume);
  if (request.wait !== undefined) checkWait(request.wait);
  if (request.signal !== undefined && !(request.signal instanceof AbortSignal)) {
    throw new ValidationError('signal', 'an AbortSignal', request.signal);
  }
  if (request.atomic !== undefined && typeof request.atomic !== 'boolean') {
    throw new ValidationError('atomic', 'true or false', request.atomic);
  }
  if (request.portable !== undefined && request.portable !== 'held' && typeof request.portable !== 'boolean') {
    throw new ValidationError('portable', `true, false or 'held'`, request.portable);
  }
  if (request.onUnavailable !== undefined) checkOneOf('onUnavailable', request.onUnavailable, ON_UNAVAILABLE);
}

/** The request as it is now, checked: its caller may change the object while the call waits. */
export function copyRequest(request: AcquireRequest): AcquireRequest {
  checkRequest(request);
  readAmounts('consume', request.consume, 0);
  return copyFields(request);
}

/** A copy of a request that was checked. */
export function copyFields(request: AcquireRequest): AcquireRequest {
  const { entityId, resource, consume, portable } = request;
  // The common request: to look up every field by its name takes a tenth of the time of an acquire in a hot group.
  if (portable === undefined && consume !== undefined && hasOnlyUsualFields(request)) {
    return { entityId, resource, consume: { ...consume } };
  }
  const copy: Record<string, unknown> = {};
  for (const field of REQUEST_FIELDS) {
    const value = request[field as keyof AcquireRequest];
    if (value !== undefined) copy[field] = field === 'signal' ? value : copyOf(value);
  }
  return copy as unknown as AcquireRequest;
}

/** The fields or elements as they are now: a caller may change its object before a call has read it. */
export function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  return (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as T;
}

/** Comparing a key with a few constants takes a third of the time of a look-up in a set. The server sends `portable`. */
function hasOnlyUsualFields(request: AcquireRequest): boolean {
  for (const key in request) {
    if (key !== 'entityId' && key !== 'resource' && key !== 'consume' && key !== 'portable') return false;
  }
  return true;
}

/** A misspelt name must not make the ask whole. */
function checkAtMost(atMost: unknown, consume: unknown): void {
  const isNamed = typeof atMost === 'string' && typeof consume === 'object' && consume !== null;
  if (isNamed && Object.hasOwn(consume, atMost) && (consume as Amounts)[atMost] !== 0) return;
  throw new ValidationError('atMost', 'the name of a limit of `consume` with an amount of at least 1', atMost);
}

function checkWait(wait: unknown): void {
  if (typeof wait !== 'object' || wait === null) throw new ValidationError('wait', 'an object with timeoutMs', wait);
  checkKnownFields('wait', wait, WAIT_FIELDS);
  const { timeoutMs, maxWaiting } = wait as { readonly timeoutMs?: unknown; readonly maxWaiting?: unknown };
  checkWhole('wait.timeoutMs', timeoutMs, 0, MAX_WAIT_MS);
  if (maxWaiting !== undefined) checkWhole('wait.maxWaiting', maxWaiting, 1, MAX_AMOUNT);
}

function checkOwnLimits(limits: unknown): void {
  checkLimits('limits', limits);
  if (limits.length === 0) throw new ValidationError('limits', 'at least one limit, or left out', limits);
}

/** Amounts as a list in millitokens. Accepts whole numbers from `least` to 1e12; refuses fields that are `undefined`. */
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
