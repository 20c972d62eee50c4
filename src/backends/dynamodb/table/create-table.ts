import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { BackendUnavailable, InfrastructureError, SchemaMismatch } from '../../../core/errors.js';
import { type Deadline, deadlineIn, pause, timeLeftMs } from '../client/deadline.js';
import { errorOf } from '../client/failures.js';
import { type Answer, sendRead, sendRepeatable, type Table } from '../client/requests.js';
import { hasVersion, refuseOlder, writeVersion } from './schema.js';
import { type LoadSdk, type SdkOptions, sdkTransport } from '../client/sdk-transport.js';
import { createNamespaceGate } from '../stores/namespace-gate.js';
import { createNamespaceStore } from '../stores/namespaces.js';
import type { Operation } from '../client/transport.js';
import { isOfThisShape, tableDefinition, TTL_ATTRIBUTE } from './table-definition.js';
import { type NamedTable, tableNameOf } from './table-name.js';

/** The table's name is `tableName`; `table`, as `dynamodb` has it, says the same. */
export type CreateTableOptions = SdkOptions & NamedTable;

const PATIENCE_MS = 120_000;
const REQUEST_MS = 10_000;
const FIRST_NAMESPACE = 'default';

/**
 * Makes a table for tests and development, with the namespace `default`, and resolves once it can be used. A table that
 * is ready stays as it is; one that was left half made, or that somebody else makes at this moment, is finished.
 */
export async function createTableThrough(options: CreateTableOptions, load?: LoadSdk): Promise<void> {
  const name = tableNameOf(options, 'tableName');
  const { region, endpoint } = options;
  const transport = sdkTransport(options, load);
  try {
    await setUpTable({ name, transport, random: Math.random, place: { region, endpoint } });
  } finally {
    transport.close();
  }
}

async function setUpTable(table: Table): Promise<void> {
  const deadline = deadlineIn(PATIENCE_MS);
  await requestTable(table, deadline);
  await untilActive(table, deadline);
  // A table of an older layout may have a version record, too: that of its clients.
  const isReady = await hasVersion(table, deadline);
  await refuseOlder(table, deadline);
  if (isReady) return;
  await enableTtl(table, deadline);
  await finishTable(table, deadline);
}

/** What a table holds from its beginning. */
export async function finishTable(table: Table, deadline: Deadline): Promise<void> {
  await registerNamespace(table);
  // Written last: who finds it need not look for the rest.
  await writeVersion(table, deadline);
}

async function requestTable(table: Table, deadline: Deadline): Promise<void> {
  const request = async () => sendRepeatable(table, 'CreateTable', tableDefinition(table.name), requestEnd(deadline));
  await unless('ResourceInUseException', request);
}

/** Waits until the table can be used; throws if it is not one of Headgate's. */
export async function untilActive(table: Table, deadline: Deadline): Promise<void> {
  for (let waitMs = 20; ; waitMs = Math.min(2 * waitMs, 1_000)) {
    const found = await describe(table, requestEnd(deadline));
    if (found !== undefined) refuseForeign(table.name, found);
    if (found?.TableStatus === 'ACTIVE') return;
    if (timeLeftMs(deadline) <= waitMs) {
      throw new BackendUnavailable(`Table ${table.name} is still ${found?.TableStatus ?? 'missing'}`, 'timeout');
    }
    await pause(waitMs);
  }
}

/** undefined: a table that was just requested need not be known everywhere. */
async function describe(table: Table, deadline: Deadline): Promise<TableDescription | undefined> {
  try {
    return (await sendRead(table, 'DescribeTable', { TableName: table.name }, deadline)).Table;
  } catch (error) {
    if (error instanceof SchemaMismatch) return undefined;
    throw error;
  }
}

/** Nothing is written into a table that is not Headgate's. */
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
  // That is how DynamoDB says that it is enabled already.
  await unless('ValidationException', async () =>
    sendRepeatable(table, 'UpdateTimeToLive', input, requestEnd(deadline)),
  );
}

/** Whether DynamoDB refuses with this error, or does it, makes no difference. */
async function unless(errorName: string, request: () => Promise<Answer<Operation>>): Promise<void> {
  try {
    const answer = await request();
    if (!answer.ok) throw errorOf(answer.failure, errorName);
  } catch (error) {
    const cause = error instanceof InfrastructureError ? error.cause : undefined;
    if (!(cause instanceof Error && cause.name === errorName)) throw error;
  }
}

/** Registers the namespace if there is none of that name, and gives its id. */
export async function registerNamespace(table: Table, name = FIRST_NAMESPACE): Promise<string> {
  const { ulid } = await import('ulidx');
  const nowMs = Date.now();
  const call = { nowMs, timeoutMs: REQUEST_MS, principal: null, auditId: ulid(nowMs) };
  // 8 bytes are 11 characters, as published.
  const id = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('base64url');
  const store = createNamespaceStore(table, createNamespaceGate(table));
  return (await store.register(call, name, id)).id;
}

function requestEnd(deadline: Deadline): Deadline {
  return Math.min(deadline, deadlineIn(REQUEST_MS));
}
