import { SchemaMismatch } from '../../core/errors.js';
import { keyItem, number, readNumber } from './attributes.js';
import type { Deadline } from './deadline.js';
import { errorOf } from './failures.js';
import { VERSION_KEY } from './keys.js';
import { readItem, sendRepeatable, type Table } from './requests.js';
import type { Item } from './transport.js';

/** The layout of the table that this code reads and writes. */
const SCHEMA_VERSION = 1;

/** Code that knows no layout from this one on would do harm to a table of `SCHEMA_VERSION`. */
const MIN_CLIENT_VERSION = 1;

/** Throws unless the table is there, and of a layout that this code understands. */
export async function checkSchema(table: Table, deadline: Deadline): Promise<void> {
  const item = await readItem(table, VERSION_KEY, deadline);
  const mismatch = item === undefined ? missingVersion(table.name) : mismatchOf(table.name, item);
  if (mismatch !== null) throw mismatch;
}

/** Whether somebody has made the table ready, for whichever version. */
export async function hasVersion(table: Table, deadline: Deadline): Promise<boolean> {
  return (await readItem(table, VERSION_KEY, deadline)) !== undefined;
}

/** What the version record says, seen from this code. */
export type VersionRecord =
  | { readonly kind: 'no-record'; readonly ours: number }
  | { readonly kind: 'current' | 'older' | 'newer'; readonly schemaVersion: number; readonly ours: number };

export async function readVersion(table: Table, deadline: Deadline): Promise<VersionRecord> {
  const item = await readItem(table, VERSION_KEY, deadline);
  if (item === undefined) return { kind: 'no-record', ours: SCHEMA_VERSION };
  const schemaVersion = readNumber(item, 'schema_version') ?? 0;
  const least = readNumber(item, 'min_client_version') ?? schemaVersion;
  const kind = least > SCHEMA_VERSION ? 'newer' : schemaVersion < SCHEMA_VERSION ? 'older' : 'current';
  return { kind, schemaVersion, ours: SCHEMA_VERSION };
}

/** Says that the table is ready. Does nothing if somebody else has said so. */
export async function writeVersion(table: Table, deadline: Deadline): Promise<void> {
  const input = {
    TableName: table.name,
    Item: {
      ...keyItem(VERSION_KEY),
      schema_version: number(SCHEMA_VERSION),
      min_client_version: number(MIN_CLIENT_VERSION),
    },
    ConditionExpression: 'attribute_not_exists(PK)',
  };
  const answer = await sendRepeatable(table, 'PutItem', input, deadline);
  if (!answer.ok && answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'PutItem');
}

function missingVersion(table: string): SchemaMismatch {
  return new SchemaMismatch(`Table ${table} has no version record`, `headgate deploy --table ${table}`);
}

/** A client must know at least `min_client_version`, and not more than what the table has been migrated to. */
function mismatchOf(table: string, item: Item): SchemaMismatch | null {
  const stored = readNumber(item, 'schema_version') ?? Number.NaN;
  const least = readNumber(item, 'min_client_version') ?? stored;
  if (least > SCHEMA_VERSION) {
    const message = `Table ${table} needs a client of schema version ${least}, this one has ${SCHEMA_VERSION}`;
    return new SchemaMismatch(message, 'npm install headgate@latest');
  }
  if (stored >= SCHEMA_VERSION) return null;
  const found = Number.isNaN(stored) ? 'an older schema' : `schema version ${stored}`;
  const message = `Table ${table} has ${found}, this client needs ${SCHEMA_VERSION}`;
  return new SchemaMismatch(message, `headgate migrate --table ${table}`);
}
