import { SchemaMismatch } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { storeArgument } from '../address.js';
import { buildNamespaceKey, keyItem, VERSION_KEY } from '../table/keys.js';
import { number, readKey, readNumber, text } from '../table/attributes.js';
import type { Deadline } from '../../../machine-time.js';
import { errorOf } from '../client/failures.js';
import { MIN_CLIENT_VERSION, OLDEST_VERSION, SCHEMA_VERSION } from './schema-version.js';
import { readOldRecord, OLD_RECORD_ATTRIBUTES } from './old-record.js';
import { scanTable } from './scan-table.js';
import { readItem, sendRepeatable, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';

/** The version of a table from before layouts had numbers, and of a table that is being migrated from such a layout. */
const UNNUMBERED = 0;

/** What the version record of a usable table says. */
export interface TableSchema {
  readonly version: number;
  /** When `headgate upgrade` raised the version; null: the table has had it from the start. */
  readonly raisedAtMs: EpochMs | null;
}

/** Throws unless the table exists and has a layout that code of the version `ours` understands. */
export async function checkSchema(table: Table, deadline: Deadline, ours = SCHEMA_VERSION): Promise<TableSchema> {
  const item = await readItem(table, VERSION_KEY, deadline);
  if (item === undefined) throw await missingVersion(table, deadline);
  const mismatch = mismatchOf(table, item, ours);
  if (mismatch !== null) throw mismatch;
  const raisedAtMs = readNumber(item, RAISED_AT) ?? null;
  return { version: readNumber(item, 'schema_version') ?? UNNUMBERED, raisedAtMs };
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
  | {
      /** `upgradable`: the table can be used, without the features that need the version of this code. */
      readonly kind: 'current' | 'upgradable' | 'older' | 'newer';
      readonly schemaVersion: number;
      readonly ours: number;
    };

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
  return { kind: kindOf(schemaVersion, least), schemaVersion, ours: SCHEMA_VERSION };
}

function kindOf(stored: number, least: number): 'current' | 'upgradable' | 'older' | 'newer' {
  if (least > SCHEMA_VERSION) return 'newer';
  if (stored < OLDEST_VERSION) return 'older';
  return stored < SCHEMA_VERSION ? 'upgradable' : 'current';
}

/** Marks the table as ready. Does nothing if it is. Throws if old records must be migrated first. */
export async function writeVersion(table: Table, deadline: Deadline): Promise<void> {
  await refuseOlder(table, deadline);
  await putVersion(table, CURRENT, 'attribute_not_exists(PK)', {}, deadline);
}

/** Makes the table refuse clients, with the command that resumes this migration if it stops. */
export async function beginMigration(table: Table, deadline: Deadline): Promise<void> {
  const unusable = { schema_version: number(UNNUMBERED), min_client_version: number(UNNUMBERED) };
  await putVersion(table, unusable, OLDER, OLDER_VALUES, deadline);
}

/** Ends the migration once all records are converted and verified: clients are accepted. */
export async function finishMigration(table: Table, deadline: Deadline): Promise<void> {
  await putVersion(table, CURRENT, OLDER, OLDER_VALUES, deadline);
}

/**
 * Raises a usable table to the version of this code: one conditional write, after which older clients are refused.
 * Returns false if another run has raised it. `nowMs` is the time of the store, known from an earlier answer: see
 * `gates.ts`.
 */
export async function raiseVersion(
  table: Table,
  deadline: Deadline,
  nowMs: EpochMs = table.transport.storeTimeMs() ?? Date.now(),
): Promise<boolean> {
  const condition = 'schema_version BETWEEN :oldest AND :last';
  const values = { ':oldest': number(OLDEST_VERSION), ':last': number(SCHEMA_VERSION - 1) };
  return putVersion(table, { ...CURRENT, [RAISED_AT]: number(nowMs) }, condition, values, deadline);
}

const RAISED_AT = 'raised_at';
const CURRENT = { schema_version: number(SCHEMA_VERSION), min_client_version: number(MIN_CLIENT_VERSION) };

/** Old clients wrote their versions as text. */
const OLDER =
  'attribute_not_exists(schema_version) OR attribute_type(schema_version, :text) OR schema_version < :version';
const OLDER_VALUES = { ':version': number(OLDEST_VERSION), ':text': text('S') };

/** Returns whether the condition held. */
async function putVersion(
  table: Table,
  fields: Item,
  condition: string,
  values: Item,
  deadline: Deadline,
): Promise<boolean> {
  const input = {
    TableName: table.name,
    Item: { ...keyItem(VERSION_KEY), ...fields },
    ConditionExpression: condition,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
  const answer = await sendRepeatable(table, 'PutItem', input, deadline);
  if (!answer.ok && answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'PutItem');
  return answer.ok;
}

/** The version record of clients of the published layouts that have no namespaces. */
export const OLD_VERSION_KEY = { PK: 'SYSTEM#', SK: '#VERSION' } as const;

/** Throws if the table has a published layout: it must be migrated before it may be marked as ready. */
export async function refuseOlder(table: Table, deadline: Deadline): Promise<void> {
  const version = await readVersion(table, deadline);
  if (version !== null && version >= OLDEST_VERSION) return;
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

/** A client must have at least `min_client_version`, and the table a layout with a number. */
function mismatchOf(table: Table, item: Item, ours: number): SchemaMismatch | null {
  const stored = readNumber(item, 'schema_version') ?? Number.NaN;
  const least = readNumber(item, 'min_client_version') ?? stored;
  if (least > ours) {
    const message = `Table ${table.name} needs a client of schema version ${least}, this one has ${ours}`;
    return new SchemaMismatch(message, 'npm install headgate@latest');
  }
  if (stored >= OLDEST_VERSION) return null;
  const found = Number.isNaN(stored) ? 'an older schema' : `schema version ${stored}`;
  return olderTable(table, `has ${found}, this client needs ${OLDEST_VERSION}`);
}
