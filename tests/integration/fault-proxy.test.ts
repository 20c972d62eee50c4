import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type Engine,
  fault,
  type FaultProxy,
  type FaultProxyOptions,
  findEngine,
  startEngine,
  startFaultProxy,
} from '../../src/testing/dynamodb/index.js';
import { clientOf, makeTable, TABLE } from '../support/dynamodb/table.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

describe.skipIf(found.status === 'unavailable')(`the fault proxy between the AWS SDK and an engine${why}`, () => {
  let engine: Engine;
  /** A client without the proxy, to read what the engine has stored. */
  let direct: DynamoDBClient;
  let proxy: FaultProxy;
  let client: DynamoDBClient;
  let key: string;
  let tests = 0;

  beforeAll(async () => {
    engine = await startEngine('dynoxide');
    direct = clientOf(engine, engine.endpoint);
    await makeTable(direct);
  });
  afterAll(async () => {
    direct.destroy();
    await engine.stop();
  });
  beforeEach(async () => {
    tests += 1;
    key = `item-${tests}`;
    await begin({});
  });
  afterEach(async () => {
    client.destroy();
    await proxy.stop();
  });

  async function begin(options: FaultProxyOptions): Promise<void> {
    proxy = await startFaultProxy(engine.endpoint, options);
    client = clientOf(engine, proxy.endpoint);
  }

  async function beginAgain(options: FaultProxyOptions): Promise<void> {
    client.destroy();
    await proxy.stop();
    await begin(options);
  }

  const addOne = (signal?: AbortSignal) =>
    client.send(
      new UpdateItemCommand({
        TableName: TABLE,
        Key: { PK: { S: key } },
        UpdateExpression: 'ADD n :one',
        ExpressionAttributeValues: { ':one': { N: '1' } },
      }),
      signal === undefined ? {} : { abortSignal: signal },
    );

  const stored = async (): Promise<number> => {
    const { Item } = await direct.send(
      new GetItemCommand({ TableName: TABLE, Key: { PK: { S: key } }, ConsistentRead: true }),
    );
    return Number(Item?.['n']?.N ?? 0);
  };

  const transaction = (...keys: string[]) =>
    new TransactWriteItemsCommand({
      TransactItems: keys.map((name) => ({ Put: { TableName: TABLE, Item: { PK: { S: name } } } })),
    });

  test('the proxy forwards requests that no rule matches, and counts them', async () => {
    await Promise.all([addOne(), addOne(), addOne()]);
    await client.send(new GetItemCommand({ TableName: TABLE, Key: { PK: { S: key } } }));
    expect(await stored()).toBe(3);
    expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 3, GetItem: 1 });
  });

  test('a lost answer is lost after the write landed', async () => {
    const lost = proxy.inject(fault.loseAnswer(), { times: 1 });
    await expect(addOne()).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect([lost.fired, await stored()]).toEqual([1, 1]);
    await addOne();
    expect(await stored()).toBe(2);
  });

  test('a lost request never reaches the engine', async () => {
    const lost = proxy.inject(fault.loseRequest(), { times: 1, operations: ['UpdateItem'] });
    await expect(addOne()).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect([lost.fired, await stored()]).toEqual([1, 0]);
  });

  test('a held answer is delivered when it is released', async () => {
    const late = proxy.inject(fault.holdAnswer());
    let answered = false;
    const answer = addOne().then(() => (answered = true));
    await late.untilFired();
    await expect.poll(stored).toBe(1);
    expect(answered).toBe(false);
    late.release();
    await answer;
  });

  test('a held request lands when it is released, after its caller has timed out', async () => {
    const late = proxy.inject(fault.holdRequest());
    const impatient = new AbortController();
    const gaveUp = expect(addOne(impatient.signal)).rejects.toMatchObject({ name: 'AbortError' });
    await late.untilFired();
    impatient.abort();
    await gaveUp;
    expect(await stored()).toBe(0);
    late.release();
    await expect.poll(stored).toBe(1);
  });

  test('an answer can be held for a given time', async () => {
    proxy.inject(fault.holdAnswer(30));
    const startMs = performance.now();
    await addOne();
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(29);
  });

  test('a throttling error names the key range', async () => {
    proxy.inject(fault.throttle(), { times: 1 });
    await expect(addOne()).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
      $metadata: { httpStatusCode: 400 },
      ThrottlingReasons: [
        { reason: 'TableWriteKeyRangeThroughputExceeded', resource: expect.stringContaining(`table/${TABLE}`) },
      ],
    });
    expect(await stored()).toBe(0);
  });

  test('a throttling error can be that of an on-demand table', async () => {
    proxy.inject(fault.throttle({ error: 'ThrottlingException', limit: 'MaxOnDemandThroughputExceeded' }));
    await expect(addOne()).rejects.toMatchObject({
      name: 'ThrottlingException',
      throttlingReasons: [{ reason: 'TableWriteMaxOnDemandThroughputExceeded' }],
    });
  });

  test('a throttling error can be that of the account', async () => {
    proxy.inject(fault.throttle({ error: 'RequestLimitExceeded', limit: null }));
    await expect(addOne()).rejects.toMatchObject({ name: 'RequestLimitExceeded' });
  });

  test.each([
    [500, 'InternalServerError'],
    [503, 'ServiceUnavailable'],
  ] as const)('a server error has the status %i', async (status, name) => {
    proxy.inject(fault.serverError(status));
    await expect(addOne()).rejects.toMatchObject({ name, $metadata: { httpStatusCode: status } });
  });

  test('an access error names the action', async () => {
    proxy.inject(fault.accessDenied());
    await expect(addOne()).rejects.toMatchObject({
      name: 'AccessDeniedException',
      message: expect.stringContaining('dynamodb:UpdateItem'),
      $metadata: { httpStatusCode: 400 },
    });
  });

  test('a conflict is reported for a single write and for a transaction', async () => {
    const conflict = proxy.inject(fault.transactionConflict([1]));
    await expect(addOne()).rejects.toMatchObject({ name: 'TransactionConflictException' });
    await expect(client.send(transaction(`${key}-a`, `${key}-b`))).rejects.toMatchObject({
      name: 'TransactionCanceledException',
      CancellationReasons: [{ Code: 'None' }, { Code: 'TransactionConflict' }],
    });
    expect(conflict.fired).toBe(2);
  });

  test('a partial batch leaves writes and reads unprocessed', async () => {
    const keys = Array.from({ length: 5 }, (_, index) => ({ PK: { S: `${key}-${index}` } }));
    const writes = keys.map((Item) => ({ PutRequest: { Item } }));
    const partial = proxy.inject(fault.processOnly(2), { times: 2 });

    const write = await client.send(new BatchWriteItemCommand({ RequestItems: { [TABLE]: writes } }));
    expect(write.UnprocessedItems).toEqual({ [TABLE]: writes.slice(2) });

    const RequestItems = { [TABLE]: { Keys: keys.slice(0, 4), ConsistentRead: true } };
    const read = await client.send(new BatchGetItemCommand({ RequestItems }));
    expect(read.Responses![TABLE]).toHaveLength(2);
    expect(read.UnprocessedKeys).toEqual({ [TABLE]: { Keys: keys.slice(2, 4), ConsistentRead: true } });

    const whole = await client.send(new BatchGetItemCommand({ RequestItems }));
    expect([whole.Responses![TABLE]!.length, whole.UnprocessedKeys]).toEqual([2, {}]);
    expect(partial.fired).toBe(2);
  });

  test('the date of answers is shifted, also of errors', async () => {
    const dates: number[] = [];
    client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        dates.push(Date.parse((result.response as { headers: Record<string, string> }).headers['date']!));
        return result;
      },
      { step: 'deserialize', priority: 'low' },
    );
    const HOUR_MS = 3_600_000;
    proxy.inject(fault.shiftDate(-10 * HOUR_MS));
    await addOne();
    proxy.inject(fault.throttle());
    proxy.inject(fault.shiftDate(20 * HOUR_MS));
    await expect(addOne()).rejects.toThrow();
    // Header dates have whole seconds, and the test takes far less than an hour.
    expect(dates.map((date) => Math.round((date - Date.now()) / HOUR_MS))).toEqual([-10, 10]);
  });

  test('the proxy refuses connections, then accepts them again on the same port', async () => {
    await proxy.refuse();
    await expect(addOne()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await proxy.accept();
    await addOne();
    // The client has an open connection, and may or may not have noticed that it was closed.
    await proxy.refuse();
    await expect(addOne()).rejects.toMatchObject({ code: expect.stringMatching(/^ECONN(?:REFUSED|RESET)$/) });
    expect([await stored(), proxy.requests.count()]).toEqual([1, 1]);
  });

  test('the proxy records bodies, answers, and the capacity that the client did not request', async () => {
    await beginAgain({ record: true, askForCapacity: true });
    proxy.inject(fault.loseAnswer(), { times: 1 });
    await expect(addOne()).rejects.toThrow();
    await addOne();
    await client.send(transaction(`${key}-a`, `${key}-b`));
    const { Item } = await client.send(new GetItemCommand({ TableName: TABLE, Key: { PK: { S: key } } }));
    expect(Item?.['n']).toEqual({ N: '2' });

    const [lost, updated, transacted] = proxy.requests.recorded;
    expect(lost).toMatchObject({ faults: ['lose-answer'], forwarded: true, answer: null });
    expect(updated).toMatchObject({
      operation: 'UpdateItem',
      body: { UpdateExpression: 'ADD n :one' },
      answer: { status: 200 },
      consumed: [{ TableName: TABLE, Table: { CapacityUnits: 1 } }],
    });
    expect(transacted!.consumed).toMatchObject([{ CapacityUnits: 4 }]);
    expect(proxy.requests.consumed()).toEqual({ readUnits: 0.5, writeUnits: 6 });
    proxy.requests.clear();
    expect(proxy.requests.recorded).toEqual([]);
  });

  test('with random faults, the engine lacks exactly the requests that were lost or throttled', async () => {
    await beginAgain({ seed: 42 });
    const before = proxy.inject(fault.loseRequest(), { probability: 0.2 });
    const after = proxy.inject(fault.loseAnswer(), { probability: 0.2 });
    const throttled = proxy.inject(fault.throttle(), { probability: 0.2 });
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => addOne()));
    const failed = results.filter(({ status }) => status === 'rejected').length;
    expect(failed).toBe(before.fired + after.fired + throttled.fired);
    expect(Math.min(before.fired, after.fired, throttled.fired)).toBeGreaterThan(0);
    expect(await stored()).toBe(200 - before.fired - throttled.fired);
    proxy.heal();
    await addOne();
  });

  test('a proxy that is stopped drops the requests that it holds', async () => {
    const late = proxy.inject(fault.holdRequest());
    const dropped = expect(addOne()).rejects.toMatchObject({ code: 'ECONNRESET' });
    await late.untilFired();
    await proxy.stop();
    await dropped;
    expect(await stored()).toBe(0);
  });

  test('an exception in the predicate of a rule is thrown when the proxy stops', async () => {
    proxy.inject(fault.loseAnswer(), {
      when: () => {
        throw new Error('a typo');
      },
    });
    await expect(addOne()).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(proxy.stop()).rejects.toThrow('a typo');
  });
});
