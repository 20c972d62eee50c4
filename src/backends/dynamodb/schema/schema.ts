import { SchemaMismatch } from '../../../core/errors.js';
import { storeArgument } from '../address.js';
import { keyItem, number, readKey, readNumber, text } from '../table/attributes.js';
import type { Deadline } from '../client/deadline.js';
import { errorOf } from '../client/failures.js';
import { buildNamespaceKey, VERSION_KEY } from '../table/keys.js';
import { readOldRecord, OLD_RECORD_ATTRIBUTES } from './old-record.js';
import { scanTable } from './scan-table.js';
import { readItem, sendRepeatable, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';

/** The layout of the table that this code reads and writes. */
export const SCHEMA_VERSION = 1;

/** The oldest schema version whose code may use a table of `SCHEMA_VERSION` without damage. */
const MIN_CLIENT_VERSION = 1;

/** The version of a table from before layouts had numbers, and of a table that is being migrated from such a layout. */
const UNNUMBERED = 0;

/** Throws unless the table exists and has a layout that this code understands. */
export async function checkSchema(table: Table, deadline: Deadline): Promise<void> {
  const item = await readItem(table, VERSION_KEY, deadline);
  const mismatch = item === undefined ? await missingVersion(table, deadline) : mismatchOf(table, item);
  if (mismatch !== null) throw mismatch;
}

/** The number of the table's layout. null: there is no version record. */
export async function readVersion(table: Table, deadline: Deadline): Promise<number | null> {
  const item = await readItem(table, VERSION_KEY, deadline);
  return item === undefined ? null : (readNumber(item, 'schema_version') ?? UNNUMBERED);
}

/** Whether the table has a version record, of any version. */
export async function hasVersion(table: Table, deadline: Deadline): Promise<boolean> {
  return (await readItem(table, VERSION_KEY, deadline)) !== undefined;
}

/** What the version record means for this code. */
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

/** Marks the table as ready. Does nothing if it is. Throws if old records must be migrated first. */
export async function writeVersion(table: Table, deadline: Deadline): Promise<void> {
  await refuseOlder(table, deadline);
  await putVersion(table, SCHEMA_VERSION, 'attribute_not_exists(PK)', {}, deadline);
}

/** Makes the table refuse clients, with the command that resumes this migration if it stops. */
export async function beginMigration(table: Table, deadline: Deadline): Promise<void> {
  await putVersion(table, UNNUMBERED, OLDER, { ':version': number(SCHEMA_VERSION), ':text': text('S') }, deadline);
}

/** Ends the migration once all records are converted and verified: clients are accepted. */
export async function finishMigration(table: Table, deadline: Deadline): Promise<void> {
  await putVersion(table, SCHEMA_VERSION, OLDER, { ':version': number(SCHEMA_VERSION), ':text': text('S') }, deadline);
}

/** Old clients wrote their versions as text. */
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

/** The version record of clients of the published layouts that have no namespaces. */
export const OLD_VERSION_KEY = { PK: 'SYSTEM#', SK: '#VERSION' } as const;

/** Throws if the table has a published layout: it must be migrated before it may be marked as ready. */
export async function refuseOlder(table: Table, deadline: Deadline): Promise<void> {
  const version = await readVersion(table, deadline);
  if (version !== null && version >= SCHEMA_VERSION) return;
  const older = version !== null || (await isOlder(table, deadline)) || (await hasOldRecord(table));
  if (older) throw olderTable(table, 'has records of an older layout');
}

/** Two reads, for a table without a version record: of records that clients of every published layout write. */
async function isOlder(table: Table, deadline: Deadline): Promise<boolean> {
  if ((await readItem(table, OLD_VERSION_KEY, deadline)) !== undefined) return true;
  const first = await readItem(table, buildNamespaceKey('default'), deadline);
  return first !== undefined && first['created_at']?.N === undefined;
}

/**
 * The old constructors of zae-limiter write no version record, so the table is scanned for their other records. A new
 * table is empty.
 */
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
  // A client whose policy only allows acquires cannot scan. It gets the command that will find out.
  const isOld = (await isOlder(table, deadline)) || (await hasOldRecord(table, 1).catch(() => false));
  if (isOld) return olderTable(table, 'has records of an older layout');
  return new SchemaMismatch(`Table ${table.name} has no version record`, `headgate deploy --table ${table.name}`);
}

function olderTable(table: Table, what: string): SchemaMismatch {
  return new SchemaMismatch(`Table ${table.name} ${what}`, `headgate migrate --store ${storeArgument(table)}`);
}

/** A client must have at least `min_client_version`, and at most the version that the table has been migrated to. */
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
