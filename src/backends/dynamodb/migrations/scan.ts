import { keyItem, readKey } from '../attributes.js';
import { deadlineIn } from '../deadline.js';
import { sendRead, type Table } from '../requests.js';
import type { Item } from '../transport.js';
import { mayGoOn, readOldRecord, unitIdOf } from './old-record.js';
import { patiently, REQUEST_MS } from './patience.js';
import type { OldRecord } from './unit.js';

/** Into so many parts a table is cut, which are read side by side. */
export const SEGMENTS = 4;
const PAGE = 500;

export async function* scanSegment(
  table: Table,
  segment: number,
  after: Item | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly items: readonly Item[]; readonly last: Item | undefined }> {
  for (let start = after; ;) {
    const input = {
      TableName: table.name,
      ConsistentRead: true,
      Segment: segment,
      TotalSegments: SEGMENTS,
      Limit: PAGE,
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    };
    const output = await patiently(async () => sendRead(table, 'Scan', input, deadlineIn(REQUEST_MS)), signal);
    start = output.LastEvaluatedKey;
    yield { items: output.Items ?? [], last: start };
    if (start === undefined) return;
  }
}

/** Old records of one page, in groups that belong together. */
export interface OldPage {
  readonly groups: readonly (readonly OldRecord[])[];
  /** Everything up to here is in this page or an earlier one; undefined: that was all. */
  readonly after: Item | undefined;
  readonly done: boolean;
}

/** Groups are never cut: one that may go on on the next page waits for it. */
export async function* scanGroups(
  table: Table,
  segment: number,
  after: Item | undefined,
  claims: (record: OldRecord) => boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<OldPage> {
  let waiting: OldRecord[] = [];
  let before = after;
  for await (const { items, last } of scanSegment(table, segment, after, signal)) {
    const groups: OldRecord[][] = waiting.length === 0 ? [] : [waiting];
    let previous = before;
    let beforeGroup = before;
    for (const item of items) {
      const record = readOldRecord(item);
      if (record !== null && claims(record)) {
        const group = groups.at(-1);
        const [leader] = group ?? [];
        if (group !== undefined && leader !== undefined && unitIdOf(leader) === unitIdOf(record)) group.push(record);
        else {
          groups.push([record]);
          beforeGroup = previous;
        }
      }
      previous = keyItem(readKey(item));
    }
    const trailing = groups.at(-1)?.at(-1);
    const lastKey = items.at(-1);
    const goesOn = last !== undefined && trailing !== undefined && mayGoOn(trailing) && trailing.item === lastKey;
    waiting = goesOn ? (groups.pop() ?? []) : [];
    before = goesOn ? beforeGroup : (last ?? previous);
    yield { groups, after: before, done: last === undefined };
  }
}
