import { SchemaMismatch } from '../../../core/errors.js';
import { storeArgument } from '../address.js';
import { keyItem, number, readKey, readNumber, text } from './attributes.js';
import type { Deadline } from '../client/deadline.js';
import { errorOf } from '../client/failures.js';
import { buildNamespaceKey, VERSION_KEY } from './keys.js';
import { readOldRecord, OLD_RECORD_ATTRIBUTES } from '../migrations/legacy/old-record.js';
import { scanTable } from '../migrations/scan.js';
import { readItem, sendRepeatable, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';

/** The layout of the table that this code reads and writes. */
export const SCHEMA_VERSION = 1;

/** Code that knows no layout from this one on would do harm to a table of `SCHEMA_VERSION`. */
const MIN_CLIENT_VERSION = 1;

/** What a table has that was published before there were numbers, and one that is being migrated from such. */
const UNNUMBERED = 0;

/** Throws unless the table is there, and of a layout that this code understands. */
export async function checkSchema(table: Table, deadline: Deadline): Promise<void> {
  const item = await readItem(table, VERSION_KEY, deadline);
  const mismatch = item === undefined ? await missingVersion(table, deadline) : mismatchOf(table, item);
  if (mismatch !== null) throw mismatch;
}

/** The number of the table's layout; null: nobody has said. */
export async function readVersion(table: Table, deadline: Deadline): Promise<number | null> {
  const item = await readItem(table, VERSION_KEY, deadline);
  return item === undefined ? null : (readNumber(item, 'schema_version') ?? UNNUMBERED);
}

/** Whether somebody has made the table ready, for whichever version. */
export async function hasVersion(table: Table, deadline: Deadline): Promise<boolean> {
  return (await readItem(table, VERSION_KEY, deadline)) !== undefined;
}

/** What the version record says, seen from this code. */
export type VersionRecord =
  | { readonly kind: 'no-record'; readonly ours: number }
  | { readonly kind: 'current' | 'older' | 'newer'; readonly schemaVersion: number; readonly ours: number };

export async function inspectVersion(table: Table, deadline: Deadline): Promise<VersionRecord> {
  const item = await readItem(table, VERSION_KEY, deadline);
  if (item === undefined) {
    const older = await isOlder(table, deadline);
    return older
      ? { kind: 'older', schemaVersion: UNNUMBERED, ours: SCHEMA_VERSION }
      : { kind: 'no-record', ours: SCHEMA_VERSION };
  }
  const schemaVersion = readNumber(item, 'schema_version') ?? UNNUMBERED;
  const least = readNumber(item, 'min_client_version') ?? schemaVersion;
  const kind = least > SCHEMA_VERSION ? 'newer' : schemaVersion < SCHEMA_VERSION ? 'older' : 'current';
  return { kind, schemaVersion, ours: SCHEMA_VERSION };
}

/** Says that the table is ready. Does nothing if somebody else has said so; refuses where old records wait to be moved. */
export async function writeVersion(table: Table, deadline: Deadline): Promise<void> {
  await refuseOlder(table, deadline);
  await putVersion(table, SCHEMA_VERSION, 'attribute_not_exists(PK)', {}, deadline);
}

/** From now on clients are refused, with the command that goes on where this one stops. */
export async function beginMigration(table: Table, deadline: Deadline): Promise<void> {
  await putVersion(table, UNNUMBERED, OLDER, { ':version': number(SCHEMA_VERSION), ':text': text('S') }, deadline);
}

/** Everything is moved, and was looked at: clients may come. */
export async function finishMigration(table: Table, deadline: Deadline): Promise<void> {
  await putVersion(table, SCHEMA_VERSION, OLDER, { ':version': number(SCHEMA_VERSION), ':text': text('S') }, deadline);
}

/** Old clients wrote their versions as texts. */
const OLDER =
  'attribute_not_exists(schema_version) OR attribute_type(schema_version, :text) OR schema_version < :version';

async function putVersion(
  table: Table,
  version: number,
  condition: string,
  values: Item,
  deadline: Deadline,
): Promise<void> {
  const input = {
    TableName: table.name,
    Item: {
      ...keyItem(VERSION_KEY),
      schema_version: number(version),
      min_client_version: number(Math.min(version, MIN_CLIENT_VERSION)),
    },
    ConditionExpression: condition,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
  const answer = await sendRepeatable(table, 'PutItem', input, deadline);
  if (!answer.ok && answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'PutItem');
}

/** Where clients of the published layouts keep their version, when they know no namespaces. */
export const OLD_VERSION_KEY = { PK: 'SYSTEM#', SK: '#VERSION' } as const;

/** Throws if the table is one of a published layout: it must be migrated before it may be called ready. */
export async function refuseOlder(table: Table, deadline: Deadline): Promise<void> {
  const version = await readVersion(table, deadline);
  if (version !== null && version >= SCHEMA_VERSION) return;
  const older = version !== null || (await isOlder(table, deadline)) || (await hasOldRecord(table));
  if (older) throw olderTable(table, 'has records of an older layout');
}

/** Two reads of a table that has no version record: of what clients of every published layout leave there. */
async function isOlder(table: Table, deadline: Deadline): Promise<boolean> {
  if ((await readItem(table, OLD_VERSION_KEY, deadline)) !== undefined) return true;
  const first = await readItem(table, buildNamespaceKey('default'), deadline);
  return first !== undefined && first['created_at']?.N === undefined;
}

/** The old constructors of zae-limiter leave no version record: only what they store tells. A new table is empty. */
async function hasOldRecord(table: Table, mostPages = Infinity): Promise<boolean> {
  let pages = 0;
  for await (const { items } of scanTable(table, { attributes: OLD_RECORD_ATTRIBUTES }, undefined, undefined)) {
    // Another process may have written our own version record since it was looked for.
    if (items.some((item) => !isVersion(item) && readOldRecord(item) !== null)) return true;
    pages += 1;
    if (pages >= mostPages) break;
  }
  return false;
}

function isVersion(item: Item): boolean {
  const { PK, SK } = readKey(item);
  return PK === VERSION_KEY.PK && SK === VERSION_KEY.SK;
}

async function missingVersion(table: Table, deadline: Deadline): Promise<SchemaMismatch> {
  // A client that may only acquire cannot scan: then it names the command that will find out.
  const isOld = (await isOlder(table, deadline)) || (await hasOldRecord(table, 1).catch(() => false));
  if (isOld) return olderTable(table, 'has records of an older layout');
  return new SchemaMismatch(`Table ${table.name} has no version record`, `headgate deploy --table ${table.name}`);
}

function olderTable(table: Table, what: string): SchemaMismatch {
  return new SchemaMismatch(`Table ${table.name} ${what}`, `headgate migrate --store ${storeArgument(table)}`);
}

/** A client must know at least `min_client_version`, and not more than what the table has been migrated to. */
function mismatchOf(table: Table, item: Item): SchemaMismatch | null {
  const stored = readNumber(item, 'schema_version') ?? Number.NaN;
  const least = readNumber(item, 'min_client_version') ?? stored;
  if (least > SCHEMA_VERSION) {
    const message = `Table ${table.name} needs a client of schema version ${least}, this one has ${SCHEMA_VERSION}`;
    return new SchemaMismatch(message, 'npm install headgate@latest');
  }
  if (stored >= SCHEMA_VERSION) return null;
  const found = Number.isNaN(stored) ? 'an older schema' : `schema version ${stored}`;
  return olderTable(table, `has ${found}, this client needs ${SCHEMA_VERSION}`);
}
