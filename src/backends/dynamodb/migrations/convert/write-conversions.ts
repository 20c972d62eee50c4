import { BackendUnavailable } from '../../../../core/errors.js';
import { deadlineIn } from '../../../../machine-time.js';
import { errorOf } from '../../client/failures.js';
import { REQUEST_MS, sendRepeatable, type Table } from '../../client/requests.js';
import type { Action } from '../../stores/actions.js';
import { withRetries } from '../../schema/retry.js';

/** DynamoDB's limits for one transaction. The bytes leave a margin for the encoding. */
const MAX_ACTIONS = 100;
const MAX_BYTES = 2_000_000;
const MAX_CONCURRENT = 4;

/** Actions that succeed or fail together. */
export interface ConversionWrite {
  readonly actions: readonly Action[];
}

/**
 * Writes many conversions in as few transactions as possible. Returns those whose conditions failed because a record
 * changed after it was read. A transaction may be sent twice, because its conditions fail the second time. Such a
 * conversion is also returned, and the next pass finds that it is done.
 */
export async function writeConversions<T extends ConversionWrite>(
  table: Table,
  conversions: readonly T[],
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const packs = packed(conversions);
  const refused: T[] = [];
  for (let at = 0; at < packs.length; at += MAX_CONCURRENT) {
    const results = await Promise.all(
      packs.slice(at, at + MAX_CONCURRENT).map(async (pack) => writePack(table, pack, signal)),
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
  // One failed condition refuses the whole transaction. Send each conversion alone to find the ones that fail.
  const refused: T[] = [];
  for (const conversion of pack) refused.push(...(await writePack(table, [conversion], signal)));
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

function packed<T extends ConversionWrite>(conversions: readonly T[]): readonly (readonly T[])[] {
  const packs: T[][] = [];
  let actions = MAX_ACTIONS;
  let bytes = MAX_BYTES;
  for (const conversion of conversions) {
    const size = JSON.stringify(conversion.actions).length;
    if (actions + conversion.actions.length > MAX_ACTIONS || bytes + size > MAX_BYTES) {
      packs.push([]);
      actions = 0;
      bytes = 0;
    }
    packs.at(-1)?.push(conversion);
    actions += conversion.actions.length;
    bytes += size;
  }
  return packs;
}
