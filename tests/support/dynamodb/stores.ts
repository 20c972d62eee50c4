import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { AdminCall, Call, RegistryChange } from '../../../src/backend.js';
import { createTable } from '../../../src/backends/dynamodb/index.js';
import type { Deadline } from '../../../src/machine-time.js';
import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import { sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import { createAuditStore } from '../../../src/backends/dynamodb/stores/audit.js';
import { createConfigStore } from '../../../src/backends/dynamodb/stores/config.js';
import { createEntityStore } from '../../../src/backends/dynamodb/stores/entities.js';
import { createManagedStore } from '../../../src/backends/dynamodb/stores/managed.js';
import { createNamespaceGate } from '../../../src/backends/dynamodb/schema/namespace-gate.js';
import { createNamespaceStore } from '../../../src/backends/dynamodb/stores/namespaces.js';
import { RecentWrites } from '../../../src/backends/dynamodb/stores/recent-writes.js';
import { createUsageStore } from '../../../src/backends/dynamodb/stores/usage.js';
import type { Operation, Operations, Transport } from '../../../src/backends/dynamodb/client/transport.js';
import { type Engine, startEngine } from '../../../src/testing/dynamodb/index.js';

export const TABLE_NAME = 'headgate-stores';
export const START_MS = 1_800_000_000_000;

/** An engine with a table of Headgate. */
export interface TestTable extends AsyncDisposable {
  readonly engine: Engine;
  readonly client: DynamoDBClient;
  readonly transport: Transport;
}

export async function startTable(): Promise<TestTable> {
  const engine = await startEngine();
  const { endpoint, region, credentials } = engine;
  const client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
  await createTable({ tableName: TABLE_NAME, client });
  return {
    engine,
    client,
    transport: sdkTransport({ client }),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await engine.stop();
    },
  };
}

/** Intercepts a request. `forward` sends it, and returns its answer. */
export type Tap = <Op extends Operation>(
  operation: Op,
  input: Operations[Op][0],
  forward: (input: Operations[Op][0]) => Promise<Operations[Op][1]>,
) => Promise<Operations[Op][1]>;

/** The random factor of pauses, so that a test does not wait. */
export const NO_PAUSES = (): number => 0;

/** The stores of one process. Processes share only the table. */
export function openStores(transport: Transport, tap?: Tap, random: () => number = Math.random) {
  const tapped: Transport = {
    ...transport,
    send: <Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline) => {
      const forward = async (sent: Operations[Op][0]) => transport.send(operation, sent, deadline);
      return tap === undefined ? forward(input) : tap(operation, input, forward);
    },
  };
  const table: Table = { name: TABLE_NAME, transport: tapped, random };
  const gate = createNamespaceGate(table);
  const ownWrites = new RecentWrites();
  return {
    table,
    gate,
    config: createConfigStore(table, gate, { require: () => {} }, ownWrites),
    entities: createEntityStore(table, gate, { require: () => {} }, ownWrites),
    managed: createManagedStore(table, gate),
    namespaces: createNamespaceStore(table, gate),
    audit: createAuditStore(table, gate),
    usage: createUsageStore(table, gate),
  };
}

export type Stores = ReturnType<typeof openStores>;

let ids = 0;

/** An id that no other test uses. */
export function freshId(): string {
  ids += 1;
  return `${process.pid.toString(36).padStart(5, '0')}${String(ids).padStart(6, '0')}`;
}

/** A change by an operator, with the id of its audit record. */
export function change(overrides: Partial<AdminCall> = {}): RegistryChange {
  return { nowMs: START_MS, timeoutMs: 10_000, principal: 'ann', auditId: `0${freshId()}`, ...overrides };
}

/** A new namespace, and the calls for it. */
export async function enter(stores: Stores): Promise<{
  readonly id: string;
  readonly call: Call;
  admin(overrides?: Partial<AdminCall>): AdminCall;
}> {
  const id = freshId();
  await stores.namespaces.register(change(), `case-${id}`, id);
  const call = { namespaceId: id, nowMs: START_MS, timeoutMs: 10_000 };
  return { id, call, admin: (overrides = {}) => ({ ...change(overrides), namespaceId: id }) };
}

/** The items of all pages of the given size. */
export async function allPages<T>(
  read: (page: { readonly limit: number; readonly after: string | null }) => unknown,
  limit = 1_000,
): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | null = null; ;) {
    const page = (await read({ limit, after })) as { readonly items: readonly T[]; readonly next: string | null };
    items.push(...page.items);
    if (page.next === null) return items;
    after = page.next;
  }
}

/** The error of the SDK when the connection breaks before the answer. */
export function connectionLost(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

/** The error of DynamoDB when two transactions conflict. */
export function transactionConflict(actions: number): Error {
  return Object.assign(new Error('Transaction cancelled'), {
    name: 'TransactionCanceledException',
    CancellationReasons: Array.from({ length: actions }, (_, at) => ({
      Code: at === 0 ? 'TransactionConflict' : 'None',
    })),
  });
}
