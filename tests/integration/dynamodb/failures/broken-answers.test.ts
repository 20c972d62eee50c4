import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../../../src/machine-time.js';
import { send, type Table } from '../../../../src/backends/dynamodb/client/requests.js';
import { openTransport } from '../../../../src/backends/dynamodb/client/open-transport.js';
import type { Operation, Operations } from '../../../../src/backends/dynamodb/client/transport.js';
import { isHeadgateError } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import { type Fault, fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const CAPACITY = 5;
/** The limits of a client that believes that no config is stored. */
const WITHOUT_CONFIG = { limits: [Limit.perMinute('rpm', 300)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
const DEADLINE_MS = 10_000;

const FAULTS: Readonly<Record<string, Fault>> = {
  'without a body': fault.emptyAnswer(),
  'without a body, to a request that was not served': fault.emptyAnswer({ served: false }),
  'of a bare object': fault.bareAnswer(),
  'of a bare object, to a request that was not served': fault.bareAnswer({ served: false }),
  'that ends in its middle': fault.truncatedAnswer(),
  'of a page with status 200': fault.htmlAnswer(200),
  'of a page with status 200, to a request that was not served': fault.htmlAnswer(200, { served: false }),
  'of a page with status 403': fault.htmlAnswer(403),
  'of a page with status 404, to a request that was not served': fault.htmlAnswer(404, { served: false }),
  'of a page with status 502': fault.htmlAnswer(502),
};

describe.skipIf(ENGINE.missing)(`broken answers of DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let table: Table;

  beforeAll(async () => {
    world = await startWorld();
    const { region } = world.engine;
    const transport = openTransport({ endpoint: world.proxy.endpoint, region });
    table = { name: world.table.name, transport, random: Math.random };
  });
  afterEach(() => world.proxy.heal());
  afterAll(async () => {
    table.transport.close();
    await world?.[Symbol.asyncDispose]();
  });

  const Key = { PK: { S: 'broken' }, SK: { S: 'broken' } };
  const inputs = (TableName: string): { readonly [Op in Operation]?: readonly Operations[Op][0][] } => ({
    BatchGetItem: [{ RequestItems: { [TableName]: { Keys: [Key] } } }],
    BatchWriteItem: [{ RequestItems: { [TableName]: [{ DeleteRequest: { Key } }] } }],
    DeleteItem: [{ TableName, Key }],
    DescribeTable: [{ TableName }],
    GetItem: [{ TableName, Key }],
    PutItem: [
      { TableName, Item: Key, ReturnValues: 'ALL_OLD' },
      { TableName, Item: Key },
    ],
    Query: ['ALL_ATTRIBUTES', 'COUNT'].map((select) => ({
      TableName,
      Select: select as 'COUNT',
      KeyConditionExpression: 'PK = :pk',
      ExpressionAttributeValues: { ':pk': Key.PK },
    })),
    Scan: [{ TableName, Limit: 1 }],
    TransactWriteItems: [{ TransactItems: [{ Put: { TableName, Item: Key } }] }],
    UpdateItem: [
      { TableName, Key },
      { TableName, Key, ReturnValues: 'ALL_NEW' },
    ],
    UpdateTimeToLive: [{ TableName, TimeToLiveSpecification: { Enabled: true, AttributeName: 'ttl' } }],
  });

  test.each(Object.entries(FAULTS))(
    'an answer %s counts as lost and as an outage, for every kind of request',
    async (_, broken) => {
      for (const [operation, requests] of Object.entries(inputs(table.name))) {
        for (const input of requests) {
          world.proxy.inject(broken, { times: 1 });
          const answer = await send(table, operation as Operation, input as never, deadlineIn(DEADLINE_MS));
          expect(answer, operation).toMatchObject({ ok: false, failure: { kind: 'lost', error: { kind: 'server' } } });
        }
      }
    },
  );

  test('an answer of DynamoDB without content is complete', async () => {
    for (const [operation, requests] of Object.entries(inputs(table.name))) {
      // The table already has its TTL attribute, and DynamoDB refuses to set it again.
      if (operation === 'UpdateTimeToLive') continue;
      for (const input of requests) {
        const answer = await send(table, operation as Operation, input as never, deadlineIn(DEADLINE_MS));
        expect(answer, operation).toMatchObject({ ok: true });
      }
    }
  });

  test.each(Object.entries(FAULTS))(
    'an answer %s to the first config read leaves the stored config in force',
    async (_, broken) => {
      const { open } = await configured();
      const limiter = await open();
      const struck = world.proxy.inject(broken, { operations: ['BatchGetItem'], times: 1 });
      const decisions = await Promise.all(Array.from({ length: 30 }, async () => limiter.tryAcquire(ASK)));
      expect(struck.fired).toBe(1);
      expect(decisions.filter(({ granted }) => granted)).toHaveLength(CAPACITY);
    },
  );

  test('one broken answer to any request causes no grant above the capacity and no wrong cache entry', async () => {
    const steps = fc.array(fc.constantFrom('take', 'take', 'refund'), { minLength: 6, maxLength: 12 });
    const cases = fc.record({ steps, broken: fc.constantFrom(...Object.values(FAULTS)), after: fc.nat({ max: 14 }) });
    const check = async ({ steps: script, broken, after }: Parameters<typeof play>[0]): Promise<void> => {
      const { outstanding, stored, granted } = await play({ steps: script, broken, after });
      expect(Math.max(0, ...outstanding)).toBeLessThanOrEqual(CAPACITY);
      // Refunds may be lost and takes may count twice. Both errors are strict.
      expect(stored).toBeGreaterThanOrEqual(outstanding.at(-1) ?? 0);
      expect(granted).toBe(Math.max(0, CAPACITY - stored));
    };
    await fc.assert(fc.asyncProperty(cases, check), { numRuns: 25 });
  });

  /** Plays the steps with one broken answer after this many good ones. Then the limiter takes the remaining tokens. */
  async function play({ steps, broken, after }: { steps: readonly string[]; broken: Fault; after: number }) {
    const { space, open } = await configured();
    let requests = 0;
    world.proxy.inject(broken, { times: 1, when: () => (requests += 1) > after });
    const limiter = await open();
    const leases: Lease[] = [];
    const outstanding: number[] = [];
    for (const step of steps) {
      try {
        if (step === 'refund') await leases.pop()?.rollback();
        else {
          const decision = await limiter.tryAcquire(ASK);
          if (decision.granted) leases.push(decision.lease);
        }
      } catch (error) {
        if (!isHeadgateError(error, 'backend.unavailable')) throw error;
      }
      outstanding.push(leases.length);
    }
    world.proxy.heal();
    const stored = await storedOf(space);
    const left = await Promise.all(Array.from({ length: CAPACITY + 1 }, async () => limiter.tryAcquire(ASK)));
    return { outstanding, stored, granted: left.filter(({ granted }) => granted).length };
  }

  /**
   * A namespace with a config, and limiters that have not read it. They share a client, because creating one is slow.
   */
  async function configured() {
    const space = await world.space();
    const transport = { ...table.transport, close: () => {} };
    const open = async () => space.open(WITHOUT_CONFIG, { transport });
    await (await open()).config.setSystem({ limits: [Limit.perMinute('rpm', CAPACITY)] });
    return { space, open };
  }

  async function storedOf(space: Space): Promise<number> {
    const [shard] = await space.shards(ASK.entityId, ASK.resource);
    return shard === undefined ? 0 : CAPACITY - Number(shard.limits[0]?.tokensMilli) / 1_000;
  }
});
