import { BackendUnavailable } from '../../../../core/errors.js';
import { deadlineIn } from '../../client/deadline.js';
import { errorOf } from '../../client/failures.js';
import { sendRepeatable, type Table } from '../../client/requests.js';
import type { Action } from '../../stores/actions.js';
import { withRetries, REQUEST_MS } from '../retry.js';

/** What DynamoDB takes in one transaction; the bytes with a margin for how they are spelt. */
const MAX_ACTIONS = 100;
const MAX_BYTES = 2_000_000;
const MAX_AT_ONCE = 4;

/** Actions that are made together or not at all. */
export interface ConversionWrite {
  readonly actions: readonly Action[];
}

/**
 * Makes the writes of many units, in as few transactions as they fit in. Gives those of which a condition did not hold:
 * somebody has written since they were read. A transaction may be sent twice, because its conditions no longer hold then;
 * such a unit is among those, too, and is found to be done when it is looked at again.
 */
export async function writeConversions<T extends ConversionWrite>(
  table: Table,
  units: readonly T[],
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const packs = packed(units);
  const refused: T[] = [];
  for (let at = 0; at < packs.length; at += MAX_AT_ONCE) {
    const results = await Promise.all(
      packs.slice(at, at + MAX_AT_ONCE).map(async (pack) => writePack(table, pack, signal)),
    );
    refused.push(...results.flat());
  }
  return refused;
}

async function writePack<T extends ConversionWrite>(
  table: Table,
  pack: readonly T[],
  signal: AbortSignal | undefined,
): Promise<readonly T[]> {
  const landed = await withRetries(async () => transact(table, pack), signal);
  if (landed) return [];
  if (pack.length === 1) return pack;
  // One refusal refuses all: each alone tells which it was.
  const refused: T[] = [];
  for (const unit of pack) refused.push(...(await writePack(table, [unit], signal)));
  return refused;
}

/** false: a condition did not hold. */
async function transact(table: Table, pack: readonly ConversionWrite[]): Promise<boolean> {
  const input = { TransactItems: pack.flatMap(({ actions }) => actions) };
  const answer = await sendRepeatable(table, 'TransactWriteItems', input, deadlineIn(REQUEST_MS));
  if (answer.ok) return true;
  const { failure } = answer;
  if (failure.kind !== 'cancelled') throw errorOf(failure, 'TransactWriteItems');
  const codes = failure.reasons.map(({ code }) => code).filter((code) => code !== 'None');
  if (codes.includes('ConditionalCheckFailed')) return false;
  throw new BackendUnavailable(`TransactWriteItems: ${[...new Set(codes)].join(', ')}`, 'contended');
}

function packed<T extends ConversionWrite>(units: readonly T[]): readonly (readonly T[])[] {
  const packs: T[][] = [];
  let actions = MAX_ACTIONS;
  let bytes = MAX_BYTES;
  for (const unit of units) {
    const size = JSON.stringify(unit.actions).length;
    if (actions + unit.actions.length > MAX_ACTIONS || bytes + size > MAX_BYTES) {
      packs.push([]);
      actions = 0;
      bytes = 0;
    }
    packs.at(-1)?.push(unit);
    actions += unit.actions.length;
    bytes += size;
  }
  return packs;
}
