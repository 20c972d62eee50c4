import { keyItem } from '../table/keys.js';
import { readKey } from '../table/attributes.js';
import type { Item } from '../client/transport.js';
import type { Table } from '../client/requests.js';
import { conversionIdOf, mayContinue, type OldRecord, readOldRecord } from '../schema/old-record.js';
import { type ScanFilter, scanTable } from '../schema/scan-table.js';

/** The old records of one page, in groups that belong together. */
export interface OldPage {
  readonly groups: readonly (readonly OldRecord[])[];
  /** Everything up to this key is in this page or an earlier one; undefined: nothing yet. */
  readonly after: Item | undefined;
  readonly done: boolean;
}

/** Never splits a group: a group that may continue on the next page is returned with that page. */
export async function* scanGroups(
  table: Table,
  filter: ScanFilter,
  after: Item | undefined,
  claims: (record: OldRecord) => boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<OldPage> {
  let waiting: OldRecord[] = [];
  let before = after;
  for await (const { items, last } of scanTable(table, filter, after, signal)) {
    const groups: OldRecord[][] = waiting.length === 0 ? [] : [waiting];
    let previous = before;
    let beforeGroup = before;
    for (const item of items) {
      const record = readOldRecord(item);
      if (record !== null && claims(record)) {
        const group = groups.at(-1);
        const [leader] = group ?? [];
        if (group !== undefined && leader !== undefined && conversionIdOf(leader) === conversionIdOf(record))
          group.push(record);
        else {
          groups.push([record]);
          beforeGroup = previous;
        }
      }
      previous = keyItem(readKey(item));
    }
    const trailing = groups.at(-1)?.at(-1);
    const isOpen =
      last !== undefined && trailing !== undefined && mayContinue(trailing) && trailing.item === items.at(-1);
    waiting = isOpen ? (groups.pop() ?? []) : [];
    before = isOpen ? beforeGroup : (last ?? previous);
    yield { groups, after: before, done: last === undefined };
  }
}
