import type { Awaitable } from '../../backend.js';
import type { Amount } from '../../core/bucket/decide.js';
import { ValidationError } from '../../core/errors.js';
import { isConsumed } from '../../core/limit-kind.js';
import { MAX_AMOUNT } from '../../core/units.js';
import { type Amounts, readAmounts } from '../acquire/request.js';
import type { LeaseAccount } from './lease-account.js';

/** The part of an account that knows the limits of its lease. */
type KnownLimits = Pick<LeaseAccount, 'kindOf' | 'learnLimits'>;

const MAX_OPERATION_ID = 64;

/** `isKept`: whether the id is kept with the lease. null: there is none. */
export function readOperationId(
  { operationId: id }: { readonly operationId?: unknown },
  isKept: boolean,
): string | null {
  if (id === undefined || id === null) return null;
  if (typeof id !== 'string' || !/^[0-9A-Za-z_.~-]+$/.test(id) || id.length > MAX_OPERATION_ID) {
    throw new ValidationError('operationId', `1 to ${MAX_OPERATION_ID} letters, digits, "_", ".", "~" or "-"`, id);
  }
  if (!isKept) throw new ValidationError('operationId', 'left out: only a portable lease remembers it', id);
  return id;
}

export function readDeltas(limits: KnownLimits, deltas: Amounts): Awaitable<readonly Amount[]> {
  return withKnownNames(limits, 'deltas', readAmounts('deltas', required('deltas', deltas), -MAX_AMOUNT));
}

export function readTotals(limits: KnownLimits, actuals: Amounts): Awaitable<readonly Amount[]> {
  return readOptionalTotals(limits, required('actuals', actuals));
}

/** No amounts if there are no totals. */
export function readOptionalTotals(limits: KnownLimits, actuals: Amounts | undefined): Awaitable<readonly Amount[]> {
  return withKnownNames(limits, 'actuals', readAmounts('actuals', actuals, 0));
}

/** Only unknown names need a read before the write. All other corrections keep the order in which they were called. */
function withKnownNames(limits: KnownLimits, field: string, amounts: readonly Amount[]): Awaitable<readonly Amount[]> {
  if (!amounts.some(({ name }) => limits.kindOf(name) === undefined)) return refuseOtherNames(limits, field, amounts);
  return limits.learnLimits().then(() => refuseOtherNames(limits, field, amounts));
}

/** Refuses names that no limit has, and names of slots. */
function refuseOtherNames(limits: KnownLimits, field: string, amounts: readonly Amount[]): readonly Amount[] {
  for (const { name } of amounts) {
    const kind = limits.kindOf(name);
    if (kind !== undefined && isConsumed(kind)) continue;
    const expected = kind === undefined ? 'the name of a limit' : 'of a rate: slots are given back by release()';
    throw new ValidationError(`${field}.${name}`, expected, name);
  }
  return amounts;
}

function required(field: string, amounts: Amounts | undefined): Amounts {
  if (amounts === undefined) throw new ValidationError(field, 'an object of amounts by limit name', amounts);
  return amounts;
}
