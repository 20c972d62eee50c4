import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, expect, test, vi } from 'vitest';
import { stopTimers, until } from '../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../machine-time.js';
import { failureOf } from './failures.js';
import { sdkTransport } from './sdk-transport.js';

const HOUR_MS = 3_600_000;
const FOUND_NOTHING = '{"ConsumedCapacity":{"TableName":"table","CapacityUnits":0.5}}';
const GET = { TableName: 'table', Key: { PK: { S: 'a' }, SK: { S: 'b' } } };
let server: Server;

afterEach(() => server.close().closeAllConnections());

async function clientOf(answer: RequestListener): Promise<DynamoDBClient> {
  server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return new DynamoDBClient({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
    maxAttempts: 1,
  });
}

test('all stores of one client share the time of its answers', async () => {
  const client = await clientOf((_, answer) => {
    answer.setHeader('Date', new Date(Date.now() + HOUR_MS).toUTCString());
    answer.end(FOUND_NOTHING);
  });
  const [first, second] = [sdkTransport({ client }), sdkTransport({ client })];
  expect(first.storeTimeMs()).toBeNull();
  await first.send('GetItem', GET, deadlineIn(5_000));
  expect([first.storeTimeMs(), first.isTimeInDoubt?.()]).toEqual([null, true]);
  await second.send('GetItem', GET, deadlineIn(5_000));
  for (const { storeTimeMs } of [first, second]) {
    expect(Math.round(((storeTimeMs() ?? 0) - Date.now()) / HOUR_MS)).toBe(1);
  }
  client.destroy();
});

test('requests are signed with the time of the store, whatever one answer said and whatever the wall clock was set to', async () => {
  const signedAt: string[] = [];
  const trueNow = Date.now.bind(Date);
  let wrongByMs = 0;
  const client = await clientOf((request, answer) => {
    signedAt.push(String(request.headers['x-amz-date']));
    answer.setHeader('Date', new Date(trueNow() + wrongByMs).toUTCString());
    answer.end(FOUND_NOTHING);
  });
  const transport = sdkTransport({ client });
  const sendWith = async (dateIsWrongByMs: number): Promise<void> => {
    wrongByMs = dateIsWrongByMs;
    await transport.send('GetItem', GET, deadlineIn(5_000));
  };
  await sendWith(0);
  await sendWith(HOUR_MS);
  await sendWith(0);
  const setClock = vi.spyOn(Date, 'now').mockImplementation(() => trueNow() - HOUR_MS);
  await sendWith(0);
  await sendWith(0);
  setClock.mockRestore();
  const hoursOff = signedAt.map((text) => {
    const [, day, time] = /^(\d{8})T(\d{6})Z$/.exec(text) ?? [];
    const iso = `${day?.replace(/(....)(..)(..)/, '$1-$2-$3')}T${time?.replace(/(..)(..)(..)/, '$1:$2:$3')}Z`;
    return Math.round(Math.abs(Date.parse(iso) - trueNow()) / HOUR_MS);
  });
  expect(hoursOff).toEqual([0, 0, 0, 0, 0]);
  client.destroy();
});

test('a request that is not answered ends at its deadline, and may have been written', async () => {
  using time = stopTimers();
  const client = await clientOf(() => time.pass(20));
  const transport = sdkTransport({ client });
  const error: unknown = await transport.send('GetItem', GET, deadlineIn(20)).catch((thrown: unknown) => thrown);
  expect(failureOf(error, 'GetItem', 'table')).toMatchObject({ kind: 'lost', error: { kind: 'timeout' } });
  client.destroy();
});

test('concurrent requests end at their own deadlines, and each passes the middleware of the client', async () => {
  using time = stopTimers();
  const held: ServerResponse[] = [];
  let holds = true;
  const client = await clientOf((_, answer) => void (holds ? held.push(answer) : answer.end(FOUND_NOTHING)));
  let seen = 0;
  client.middlewareStack.add(
    (next) => async (request) => {
      seen += 1;
      return next(request);
    },
    { step: 'build' },
  );
  const transport = sdkTransport({ client });
  const [short, long] = [20, 20_000].map((ms) => transport.send('GetItem', { ...GET }, deadlineIn(ms)));
  await until(() => held.length === 2);
  time.pass(20);
  await expect(short).rejects.toMatchObject({ name: 'AbortError' });
  holds = false;
  for (const answer of held) answer.end(FOUND_NOTHING);
  expect(await long).toMatchObject({ $metadata: { httpStatusCode: 200 } });
  const again = await transport.send('GetItem', { ...GET }, deadlineIn(20_000));
  expect(again).toMatchObject({ $metadata: { httpStatusCode: 200 } });
  expect(seen).toBe(3);
  client.destroy();
});

test('a deadline applies even if middleware of the client replaces the input', async () => {
  using time = stopTimers();
  const client = await clientOf(() => time.pass(20));
  client.middlewareStack.add((next) => async (request) => next({ ...request, input: { ...request.input } }), {
    step: 'initialize',
  });
  const transport = sdkTransport({ client });
  await expect(transport.send('GetItem', GET, deadlineIn(20))).rejects.toMatchObject({ name: 'AbortError' });
  client.destroy();
});

test('a request whose answer was swallowed by middleware of the client may have been written', async () => {
  const client = await clientOf((_, answer) => answer.end(FOUND_NOTHING));
  client.middlewareStack.add(
    (next) => async (request) => {
      await next(request);
      throw new TypeError('the middleware has a defect');
    },
    { step: 'initialize' },
  );
  const error: unknown = await sdkTransport({ client })
    .send('GetItem', GET, deadlineIn(5_000))
    .catch((thrown: unknown) => thrown);
  const message = expect.stringContaining('the middleware has a defect') as string;
  expect(failureOf(error, 'GetItem', 'table')).toMatchObject({ kind: 'lost', error: { kind: 'server', message } });
  client.destroy();
});

test('a request that fails for missing credentials was not written', async () => {
  const client = await clientOf((_, answer) => answer.end(FOUND_NOTHING));
  const denied = Object.assign(new Error('not authorized'), {
    name: 'AccessDenied',
    $metadata: { httpStatusCode: 403 },
  });
  client.config.credentials = async () => Promise.reject(denied);
  const error: unknown = await sdkTransport({ client })
    .send('GetItem', GET, deadlineIn(5_000))
    .catch((thrown: unknown) => thrown);
  expect(failureOf(error, 'GetItem', 'table')).toMatchObject({ kind: 'fatal' });
  client.destroy();
});
