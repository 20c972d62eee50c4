import type { DeleteItemInput, PutItemInput } from '@aws-sdk/client-dynamodb';
import type { ManagedMark, ManagedStore } from '../../../backend.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { sameJson } from '../../../core/manifest/same-json.js';
import { buildManagedRecordKey, keyItem, MANAGED_PREFIX } from '../table/keys.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { errorOf } from '../client/failures.js';
import { decodeManaged, encodeManaged } from '../table/records.js';
import { readItem, sendRepeatable, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { ABSENT, requiring, type Seen } from './actions.js';
import type { NamespaceGate } from '../schema/namespace-gate.js';
import { behind, pageOfRecords, readRows } from './rows.js';

/** The marks of limits files. */
export function createManagedStore(table: Table, gate: NamespaceGate): ManagedStore {
  return {
    async list(call, page) {
      await gate.check(call);
      const { namespaceId: ns, timeoutMs } = call;
      const deadline = deadlineIn(timeoutMs);
      const partitions = [buildManagedRecordKey(ns, '').PK];
      const range = { index: null, partitions, ...behind(MANAGED_PREFIX, page.after) };
      const rows = readRows(table, range, page.limit + 1, () => deadline);
      return pageOfRecords(
        rows,
        page.limit,
        (items) => items.map(decodeManaged),
        ({ key }) => key,
      );
    },

    async read(call, key) {
      await gate.check(call);
      const item = await readMark(table, call.namespaceId, key, deadlineIn(call.timeoutMs));
      return item === undefined ? undefined : decodeManaged(item);
    },

    async mark(call, mark) {
      await gate.check(call);
      await writeMark(table, call.namespaceId, mark, deadlineIn(call.timeoutMs));
    },
  };
}

async function readMark(table: Table, ns: string, key: string, deadline: Deadline): Promise<Item | undefined> {
  return readItem(table, buildManagedRecordKey(ns, key), deadline);
}

/** Writes a mark without another change. */
export async function writeMark(table: Table, ns: string, mark: ManagedMark, deadline: Deadline): Promise<void> {
  const action = await markAction(table, ns, mark, deadline);
  const answer =
    'Put' in action
      ? await sendRepeatable(table, 'PutItem', action.Put, deadline)
      : await sendRepeatable(table, 'DeleteItem', action.Delete, deadline);
  if (answer.ok) return;
  if (answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'writing a mark');
  // A retry finds the result of the first request.
  const item = await readMark(table, ns, mark.key, deadline);
  if (!sameJson(item === undefined ? null : decodeManaged(item).value, mark.value)) throw changedMeanwhile(mark.key);
}

type MarkAction = { readonly Put: PutItemInput } | { readonly Delete: DeleteItemInput };

/** The mark as part of its change. If the caller gives `seen`, the condition is that the mark still has that value. */
export async function markAction(
  table: Table,
  ns: string,
  { key, value, seen }: ManagedMark,
  deadline: Deadline,
): Promise<MarkAction> {
  const condition = seen === undefined ? {} : requiring(await expectMark(table, ns, key, seen, deadline)).build();
  const TableName = table.name;
  if (value === null) return { Delete: { TableName, Key: keyItem(buildManagedRecordKey(ns, key)), ...condition } };
  return { Put: { TableName, Item: encodeManaged(ns, key, value), ...condition } };
}

/** The order of JSON fields does not matter to the caller, so the condition compares the stored text. */
async function expectMark(table: Table, ns: string, key: string, seen: unknown, deadline: Deadline): Promise<Seen> {
  const item = await readMark(table, ns, key, deadline);
  if (!sameJson(item === undefined ? null : decodeManaged(item).value, seen)) throw changedMeanwhile(key);
  return item === undefined ? ABSENT : { value: item['value'] };
}

function changedMeanwhile(key: string): BackendUnavailable {
  return new BackendUnavailable(`the mark of ${key} was changed meanwhile`, 'contended');
}
