import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { BackendUnavailable, InfrastructureError, SchemaMismatch } from '../../../core/errors.js';
import { type Deadline, deadlineIn, sleep, timeLeftMs } from '../../../machine-time.js';
import { errorOf } from '../client/failures.js';
import { REQUEST_MS, type Answer, sendRead, sendRepeatable, type Table } from '../client/requests.js';
import { hasVersion, refuseOlder, writeVersion } from './schema.js';
import { openTransport } from '../client/open-transport.js';
import type { LoadSdk, SdkOptions } from '../client/sdk-transport.js';
import { createNamespaceGate } from './namespace-gate.js';
import { createNamespaceStore } from '../stores/namespaces.js';
import type { Operation } from '../client/transport.js';
import { isOfThisShape, tableDefinition, TTL_ATTRIBUTE } from '../table/table-definition.js';
import { type NamedTable, tableNameOf } from '../table/table-name.js';

/** `tableName` is the table's name. `table`, the option of `dynamodb`, is accepted too. */
export type CreateTableOptions = SdkOptions & NamedTable;

const PATIENCE_MS = 120_000;
const FIRST_NAMESPACE = 'default';

/**
 * Creates a table for tests and development, with the namespace `default`, and resolves once the table can be used. A
 * ready table is not changed. A table that is half created, or that another process is creating now, is completed.
 */
export async function createTableThrough(options: CreateTableOptions, load?: LoadSdk): Promise<void> {
  const name = tableNameOf(options, 'tableName');
  const { region, endpoint } = options;
  const transport = openTransport(options, load);
  try {
    await setUpTable({ name, transport, random: Math.random, address: { region, endpoint } });
  } finally {
    transport.close();
  }
}

async function setUpTable(table: Table): Promise<void> {
  const deadline = deadlineIn(PATIENCE_MS);
  await requestTable(table, deadline);
  await untilActive(table, deadline);
  // A table of an older layout may also have a version record, written by its own clients.
  const isReady = await hasVersion(table, deadline);
  await refuseOlder(table, deadline);
  if (isReady) return;
  await enableTtl(table, deadline);
  await finishTable(table, deadline);
}

/** Writes the first records of a table. */
export async function finishTable(table: Table, deadline: Deadline): Promise<void> {
  await registerNamespace(table);
  // Written last: a process that finds it need not look for the rest.
  await writeVersion(table, deadline);
}

async function requestTable(table: Table, deadline: Deadline): Promise<void> {
  const request = async () => sendRepeatable(table, 'CreateTable', tableDefinition(table.name), requestEnd(deadline));
  await ignoring('ResourceInUseException', request);
}

/** Waits until the table can be used. Throws if it is not a Headgate table. */
export async function untilActive(table: Table, deadline: Deadline): Promise<void> {
  for (let waitMs = 20; ; waitMs = Math.min(2 * waitMs, 1_000)) {
    const found = await describe(table, requestEnd(deadline));
    if (found !== undefined) refuseForeign(table.name, found);
    if (found?.TableStatus === 'ACTIVE') return;
    if (timeLeftMs(deadline) <= waitMs) {
      throw new BackendUnavailable(`Table ${table.name} is still ${found?.TableStatus ?? 'missing'}`, 'timeout');
    }
    await sleep(waitMs);
  }
}

/** undefined: DynamoDB does not show the table yet, which is possible shortly after CreateTable. */
async function describe(table: Table, deadline: Deadline): Promise<TableDescription | undefined> {
  try {
    return (await sendRead(table, 'DescribeTable', { TableName: table.name }, deadline)).Table;
  } catch (error) {
    if (error instanceof SchemaMismatch) return undefined;
    throw error;
  }
}

/** Throws for a table that is not Headgate's, before anything is written to it. */
function refuseForeign(name: string, found: TableDescription): void {
  if (isOfThisShape(found)) return;
  const message = `Table ${name} exists and has other keys than Headgate's tables`;
  throw new SchemaMismatch(message, 'headgate deploy --table another-name');
}

async function enableTtl(table: Table, deadline: Deadline): Promise<void> {
  const input = {
    TableName: table.name,
    TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
  };
  // DynamoDB answers with this error if it is already enabled.
  await ignoring('ValidationException', async () =>
    sendRepeatable(table, 'UpdateTimeToLive', input, requestEnd(deadline)),
  );
}

/** Sends the request. The named error counts as success, because it says that the change is already made. */
async function ignoring(errorName: string, request: () => Promise<Answer<Operation>>): Promise<void> {
  try {
    const answer = await request();
    if (!answer.ok) throw errorOf(answer.failure, errorName);
  } catch (error) {
    const cause = error instanceof InfrastructureError ? error.cause : undefined;
    if (!(cause instanceof Error && cause.name === errorName)) throw error;
  }
}

/** Registers the namespace if none has that name, and returns its id. */
export async function registerNamespace(table: Table, name = FIRST_NAMESPACE): Promise<string> {
  const { ulid } = await import('ulidx');
  const nowMs = Date.now();
  const call = { nowMs, timeoutMs: REQUEST_MS, principal: null, auditId: ulid(nowMs) };
  // 8 bytes are 11 characters, the documented length of an id.
  const id = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('base64url');
  const store = createNamespaceStore(table, createNamespaceGate(table));
  return (await store.register(call, name, id)).id;
}

function requestEnd(deadline: Deadline): Deadline {
  return Math.min(deadline, deadlineIn(REQUEST_MS));
}
