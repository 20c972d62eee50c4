import { createHash } from 'node:crypto';
import type { AuditAction, RegistryChange } from '../../../backend.js';
import { BackendUnavailable, type HeadgateError } from '../../../core/errors.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../machine-time.js';
import { causeOfCancel, errorOf } from '../client/failures.js';
import { encodeAudit } from '../table/records.js';
import { sendRepeatable, type Table } from '../client/requests.js';
import type { Action } from './actions.js';
import { markAction, writeMark } from './managed.js';

/** The result of a change, computed from what was read. */
export interface PlannedChange<T> {
  readonly result: T;
  /** null: no changes, and no audit record is written. */
  readonly write: PlannedWrite | null;
}

export interface PlannedWrite {
  readonly action: AuditAction;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
  /** Each action is on a different record, with the condition that the record did not change since it was read. */
  readonly actions: readonly Action[];
}

/**
 * Reads, decides, and writes the change with its audit record in one transaction. Starts over when another writer
 * changed a record, until the deadline.
 */
export async function writeChange<T>(
  table: Table,
  ns: string,
  call: RegistryChange,
  deadline: Deadline,
  plan: () => Promise<PlannedChange<T>>,
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
    // A token per attempt: requests with the same token must not differ.
    const token = tokenOf(ns, write.subject, call.auditId, attempt);
    if ((await transact(table, actions, token, deadline)) === 'written') return result;
    await backOff(table, attempt, deadline);
  }
}

/** The audit record must be the first action: `transact` uses it to detect whether the transaction was written. */
function auditAction(
  table: Table,
  ns: string,
  { auditId: id, nowMs: atMs, principal }: RegistryChange,
  { action, subject, before, after }: Omit<PlannedWrite, 'actions'>,
): Action {
  const item = encodeAudit(ns, { id, atMs, principal, action, subject, before, after });
  return { Put: { TableName: table.name, Item: item, ConditionExpression: 'attribute_not_exists(PK)' } };
}

/** DynamoDB limits a token to 36 letters, digits and dashes; the parts are longer. */
function tokenOf(...parts: readonly (string | number)[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 36);
}

const CONDITION_FAILED = 'ConditionalCheckFailed';

/**
 * Writes all actions or none; the first must be an audit record. Retries until it is answered. DynamoDB deduplicates by
 * the token for ten minutes. After that, and on engines that ignore the token, the audit record's id is the proof: if
 * it exists, this change was written.
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
    const cause = causeOfCancel(answer.failure.reasons, 'TransactWriteItems', table.name);
    if (cause.kind === 'fatal') throw cause.error;
    await backOff(table, attempt, deadline, cause.kind === 'throttled' ? cause.error : undefined);
  }
}

/** `late`: what is thrown if no time is left. */
async function backOff(table: Table, attempt: number, deadline: Deadline, late?: HeadgateError): Promise<void> {
  const waitMs = backOffMs(attempt, table.random);
  if (timeLeftMs(deadline) <= waitMs) {
    const what = 'Other writers kept changing the same records until the deadline';
    throw late ?? new BackendUnavailable(what, 'contended');
  }
  await sleep(waitMs);
}
