import { createHash } from 'node:crypto';
import type { AuditAction, RegistryChange } from '../../../backend.js';
import { BackendUnavailable, InfrastructureError } from '../../../core/errors.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import { errorOf } from '../client/failures.js';
import { encodeAudit } from '../table/records.js';
import { sendRepeatable, type Table } from '../client/requests.js';
import type { Action } from './actions.js';
import { markAction, writeMark } from './managed.js';

/** What a change comes to, by what was read. */
export interface Plan<T> {
  readonly result: T;
  /** null: there is nothing to change, and no record is left. */
  readonly write: PlannedWrite | null;
}

export interface PlannedWrite {
  readonly action: AuditAction;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
  /** Each on a record of its own, with the condition that it still is as it was read. */
  readonly actions: readonly Action[];
}

/**
 * Reads, decides, and writes the change with its audit record in one transaction; again from the start if somebody else
 * was quicker, until the time is over.
 */
export async function writeChange<T>(
  table: Table,
  ns: string,
  call: RegistryChange,
  deadline: Deadline,
  plan: () => Promise<Plan<T>>,
): Promise<T> {
  const mark = call.managed ?? null;
  for (let attempt = 0; ; attempt++) {
    const { result, write } = await plan();
    if (write === null) {
      if (mark !== null) await writeMark(table, ns, mark, deadline);
      return result;
    }
    const marks = mark === null ? [] : [await markAction(table, ns, mark, deadline)];
    const actions = [auditAction(table, ns, call, write), ...write.actions, ...marks];
    // Of this attempt alone: what is sent under one token must not differ.
    const token = tokenOf(ns, write.subject, call.auditId, attempt);
    if ((await transact(table, actions, token, deadline)) === 'written') return result;
    await pauseForOthers(table, attempt, deadline);
  }
}

/** The record of a change. It goes first in its transaction: `transact` reads from it whether that has been written. */
function auditAction(
  table: Table,
  ns: string,
  { auditId: id, nowMs: atMs, principal }: RegistryChange,
  { action, subject, before, after }: Omit<PlannedWrite, 'actions'>,
): Action {
  const item = encodeAudit(ns, { id, atMs, principal, action, subject, before, after });
  return { Put: { TableName: table.name, Item: item, ConditionExpression: 'attribute_not_exists(PK)' } };
}

/** A token has at most 36 letters, digits and dashes, which are fewer than these parts have. */
function tokenOf(...parts: readonly (string | number)[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 36);
}

const CONDITION_FAILED = 'ConditionalCheckFailed';
const PASSING = new Set(['None', 'TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

/**
 * Writes all actions or none; the first must be an audit record. Sent again until it is answered: DynamoDB recognizes
 * the token for ten minutes, and beyond that, or where a token means nothing, the audit record's id is the proof. If it
 * is there, this very change has been written.
 */
async function transact(
  table: Table,
  actions: readonly Action[],
  token: string,
  deadline: Deadline,
): Promise<'written' | 'refused'> {
  const input = { TransactItems: [...actions], ClientRequestToken: token };
  for (let attempt = 0; ; attempt++) {
    const answer = await sendRepeatable(table, 'TransactWriteItems', input, deadline);
    if (answer.ok) return 'written';
    if (answer.failure.kind !== 'cancelled') throw errorOf(answer.failure, 'TransactWriteItems');
    const codes = answer.failure.reasons.map(({ code }) => code);
    if (codes[0] === CONDITION_FAILED) return 'written';
    if (codes.includes(CONDITION_FAILED)) return 'refused';
    if (!codes.every((code) => PASSING.has(code))) {
      throw new InfrastructureError('infrastructure.dynamodb', `TransactWriteItems: cancelled (${codes.join(', ')})`);
    }
    await pauseForOthers(table, attempt, deadline);
  }
}

async function pauseForOthers(table: Table, attempt: number, deadline: Deadline): Promise<void> {
  const waitMs = backOffMs(attempt, table.random);
  if (timeLeftMs(deadline) <= waitMs) {
    throw new BackendUnavailable('Other writers changed the same records until the time was over', 'contended');
  }
  await pause(waitMs);
}
