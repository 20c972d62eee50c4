import type { ManagedMark, ManagedStore } from '../../../backend.js';
import { keyItem } from '../attributes.js';
import { type Deadline, deadlineIn } from '../deadline.js';
import { errorOf } from '../failures.js';
import { buildManagedKey, MANAGED_PREFIX } from '../keys.js';
import { decodeManaged, encodeManaged } from '../records.js';
import { deleteItems, sendRepeatable, type Table } from '../requests.js';
import type { Action } from './actions.js';
import type { NamespaceGate } from './namespace-gate.js';
import { behind, pageOfRows, readRows } from './rows.js';

/** What declarative files own. */
export function createManagedStore(table: Table, gate: NamespaceGate): ManagedStore {
  return {
    async list(call, page) {
      await gate.check(call);
      const { namespaceId: ns, timeoutMs } = call;
      const deadline = deadlineIn(timeoutMs);
      const partitions = [buildManagedKey(ns, '').PK];
      const range = { index: null, partitions, ...behind(MANAGED_PREFIX, page.after) };
      const rows = readRows(table, range, page.limit + 1, () => deadline);
      return pageOfRows(
        rows,
        page.limit,
        (items) => items.map(decodeManaged),
        ({ key }) => key,
      );
    },

    async mark(call, mark) {
      await gate.check(call);
      await writeMark(table, call.namespaceId, mark, deadlineIn(call.timeoutMs));
    },
  };
}

/** A mark by itself. The last one of its key counts, so that it may be sent again. */
export async function writeMark(table: Table, ns: string, mark: ManagedMark, deadline: Deadline): Promise<void> {
  const { key, value } = mark;
  if (value === null) {
    await deleteItems(table, [buildManagedKey(ns, key)], deadline);
    return;
  }
  const input = { TableName: table.name, Item: encodeManaged(ns, key, value) };
  const answer = await sendRepeatable(table, 'PutItem', input, deadline);
  if (!answer.ok) throw errorOf(answer.failure, 'PutItem');
}

/** A mark as a part of the change that it belongs to. */
export function markAction(table: Table, ns: string, { key, value }: ManagedMark): Action {
  const TableName = table.name;
  if (value === null) return { Delete: { TableName, Key: keyItem(buildManagedKey(ns, key)) } };
  return { Put: { TableName, Item: encodeManaged(ns, key, value) } };
}
