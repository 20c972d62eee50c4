import { json, readJson, readText, text } from '../table/attributes.js';
import { buildMigrationKey, keyItem } from '../table/keys.js';
import { deadlineIn } from '../../../machine-time.js';
import { errorOf } from '../client/failures.js';
import { REQUEST_MS, readItem, sendRepeatable, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { withRetries } from '../schema/retry.js';
import { NOTHING, type Tally } from './tally.js';

export const PHASES = ['copy', 'verify', 'remove'] as const;
export type Phase = (typeof PHASES)[number];

/** The progress of a migration. */
export interface MigrationState {
  readonly phase: Phase | 'done';
  /** The pass within the phase. The remove phase runs again while old clients write. */
  readonly pass: number;
  /** Sums of the completed phases. `found` is what the copy phase saw. */
  readonly found: number;
  readonly written: number;
  readonly strict: number;
}

export const FRESH: MigrationState = { phase: 'copy', pass: 1, found: 0, written: 0, strict: 0 };

export async function readMigrationState(table: Table, migration: string): Promise<MigrationState | null> {
  const item = await read(table, migration, 'state');
  return item === undefined ? null : (readJson(item, 'state') as MigrationState);
}

export async function writeMigrationState(table: Table, migration: string, state: MigrationState): Promise<void> {
  await write(table, migration, 'state', { state: json(state) });
}

/** The progress of a pass's scan. */
export interface PassState {
  /** Every record up to this key is processed; undefined: start at the beginning. */
  readonly after: Item | undefined;
  readonly done: boolean;
  readonly tally: Tally;
}

/** Returns a fresh state when the stored one belongs to another phase or pass. */
export async function readPass(table: Table, migration: string, pass: string): Promise<PassState> {
  const item = await read(table, migration, 'pass');
  if (item === undefined || readText(item, 'pass') !== pass) return { after: undefined, done: false, tally: NOTHING };
  const after = readJson(item, 'after') as Item | null;
  return { after: after ?? undefined, done: item['done']?.BOOL === true, tally: readJson(item, 'tally') as Tally };
}

export async function writePass(
  table: Table,
  migration: string,
  pass: string,
  { after, done, tally }: PassState,
): Promise<void> {
  const fields = { pass: text(pass), after: json(after ?? null), done: { BOOL: done }, tally: json(tally) };
  await write(table, migration, 'pass', fields);
}

async function read(table: Table, migration: string, part: 'state' | 'pass'): Promise<Item | undefined> {
  return withRetries(async () => readItem(table, buildMigrationKey(migration, part), deadlineIn(REQUEST_MS)));
}

async function write(table: Table, migration: string, part: 'state' | 'pass', fields: Item): Promise<void> {
  const input = { TableName: table.name, Item: { ...keyItem(buildMigrationKey(migration, part)), ...fields } };
  const answer = await withRetries(async () => sendRepeatable(table, 'PutItem', input, deadlineIn(REQUEST_MS)));
  if (!answer.ok) throw errorOf(answer.failure, 'PutItem');
}
