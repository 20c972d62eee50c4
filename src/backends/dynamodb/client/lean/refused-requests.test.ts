import type { IncomingMessage } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import {
  closeAll,
  failureBy,
  FOUND_NOTHING,
  get,
  lookupWith,
  NONE,
  serve,
  transportTo,
} from '../../../../../tests/support/dynamodb/lean-transports.js';

const HOUR_MS = 3_600_000;

afterEach(closeAll);

test('requests are signed with the time of the store after one answer, whatever the wall clock is set to', async () => {
  const signedAt: string[] = [];
  const trueNow = Date.now.bind(Date);
  const { endpoint } = await serve((request, answer) => {
    signedAt.push(String(request.headers['x-amz-date']));
    answer.setHeader('Date', new Date(trueNow()).toUTCString());
    answer.end(FOUND_NOTHING);
  });
  let wrongByMs = -HOUR_MS;
  const setClock = vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + wrongByMs);
  const transport = transportTo(endpoint);
  await get(transport);
  expect([transport.storeTimeMs(), transport.isTimeInDoubt?.()]).toEqual([null, true]);
  await get(transport);
  expect(Math.round(Math.abs((transport.storeTimeMs() ?? 0) - trueNow()) / HOUR_MS)).toBe(0);
  wrongByMs = HOUR_MS;
  await get(transport);
  setClock.mockRestore();
  const hoursOff = signedAt.map((text) => {
    const iso = text.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5');
    return Math.round(Math.abs(Date.parse(iso) - trueNow()) / HOUR_MS);
  });
  expect(hoursOff).toEqual([1, 0, 0]);
});

/** As DynamoDB does: a signature is valid for five minutes. Returns the headers `X-Amz-Date` that it saw. */
async function serveFreshSignatures(
  now: () => number,
  hasGoodKeys: (request: IncomingMessage) => boolean = () => true,
) {
  const signedAt: string[] = [];
  const { endpoint } = await serve((request, answer) => {
    const atTime = String(request.headers['x-amz-date']);
    signedAt.push(atTime);
    const iso = atTime.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5');
    answer.setHeader('Date', new Date(now()).toUTCString());
    const isFresh = Math.abs(Date.parse(iso) - now()) < 300_000;
    if (isFresh && hasGoodKeys(request)) return void answer.end(FOUND_NOTHING);
    const [type, message] = isFresh
      ? ['ExpiredTokenException', 'The security token included in the request is expired']
      : ['InvalidSignatureException', 'Signature expired: it is too old'];
    return void answer.writeHead(400).end(JSON.stringify({ __type: `com.amazon.coral.service#${type}`, message }));
  });
  return { endpoint, signedAt };
}

test.each([-HOUR_MS, HOUR_MS])(
  'on a machine whose clock is wrong by %d ms, the first request is signed again with the time of the store',
  async (wrongByMs) => {
    const trueNow = Date.now.bind(Date);
    const { endpoint, signedAt } = await serveFreshSignatures(trueNow);
    using _ = vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + wrongByMs);
    const transport = transportTo(endpoint);
    expect(await get(transport)).toHaveProperty('ConsumedCapacity');
    expect(await get(transport)).toHaveProperty('ConsumedCapacity');
    expect(signedAt).toHaveLength(3);
  },
);

test('after a virtual machine was paused, the first request is signed again with the time of the store', async () => {
  let pausedMs = 0;
  const { endpoint, signedAt } = await serveFreshSignatures(() => Date.now() + pausedMs);
  const transport = transportTo(endpoint);
  await get(transport);
  expect(transport.storeTimeMs()).not.toBeNull();
  pausedMs = HOUR_MS;
  expect(await get(transport)).toHaveProperty('ConsumedCapacity');
  expect(await get(transport)).toHaveProperty('ConsumedCapacity');
  expect(signedAt).toHaveLength(4);
});

test('a signature that is refused for another reason than its time is not sent again', async () => {
  let requests = 0;
  const { endpoint } = await serve((_, answer) => {
    requests += 1;
    answer.statusCode = 400;
    answer.end('{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"It does not match"}');
  });
  const failure = await failureBy(get(transportTo(endpoint)));
  expect(failure).toMatchObject({ kind: 'fatal', error: { code: 'backend.denied' } });
  expect(requests).toBe(1);
});

/** A store to which only the keys `new` are good. Returns the keys of the requests that it saw. */
async function serveNewKeys(onExpired: () => void) {
  const used: (string | undefined)[] = [];
  const { endpoint } = await serve((request, answer) => {
    const [, key] = /Credential=([^/]+)/.exec(String(request.headers.authorization)) ?? [];
    used.push(key);
    if (key === 'new') return void answer.end(FOUND_NOTHING);
    onExpired();
    return void answer
      .writeHead(400)
      .end('{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"expired"}');
  });
  return { endpoint, used };
}

test('a request whose keys DynamoDB calls expired is sent again with new keys', async () => {
  const env = { AWS_ACCESS_KEY_ID: 'old', AWS_SECRET_ACCESS_KEY: 'b' };
  const { endpoint, used } = await serveNewKeys(() => (env.AWS_ACCESS_KEY_ID = 'new'));
  const transport = transportTo(endpoint, { env });
  await get(transport);
  await get(transport);
  expect(used).toEqual(['old', 'new', 'new']);
});

test('a request whose new keys have expired, too, is denied, and the next one has newer keys', async () => {
  const env = { AWS_ACCESS_KEY_ID: 'old', AWS_SECRET_ACCESS_KEY: 'b' };
  const { endpoint, used } = await serveNewKeys(() => {});
  const transport = transportTo(endpoint, { env });
  const expired = await failureBy(get(transport));
  expect(expired).toMatchObject({ kind: 'fatal', error: { code: 'backend.denied' } });
  env.AWS_ACCESS_KEY_ID = 'new';
  await get(transport);
  expect(used).toEqual(['old', 'old', 'new']);
});

test.each([
  { clock: 'shows it', shownMs: HOUR_MS },
  { clock: 'stood', shownMs: 0 },
])('after a pause in which its keys expired and its clock $clock, a process fails no request', async ({ shownMs }) => {
  let pausedMs = 0;
  const startMs = Date.now();
  const trueNow = (): number => startMs + pausedMs;
  const expiry = new Map<string | undefined, number>();
  const { endpoint, signedAt } = await serveFreshSignatures(trueNow, ({ headers }) => {
    const [, key] = /Credential=([^/]+)/.exec(String(headers.authorization)) ?? [];
    return trueNow() < (expiry.get(key) ?? 0);
  });
  using _ = vi.spyOn(Date, 'now').mockImplementation(() => startMs + (pausedMs === 0 ? 0 : shownMs));
  const accessKeyId = (): string => `key-${expiry.size}`;
  const providers = {
    // As the SDK's chain does: it returns the keys that it has until they expire by the clock of this machine.
    fromNodeProviderChain: () => async (options?: { readonly forceRefresh?: boolean }) => {
      if (options?.forceRefresh === true || (expiry.get(accessKeyId()) ?? 0) <= Date.now()) {
        expiry.set(`key-${expiry.size + 1}`, trueNow() + HOUR_MS / 2);
      }
      return { accessKeyId: accessKeyId(), secretAccessKey: 's', expiration: new Date(expiry.get(accessKeyId()) ?? 0) };
    },
  };
  const transport = transportTo(endpoint.replace('127.0.0.1', 'dynamodb.test'), {
    packages: { ...NONE, providers: async () => providers },
    lookup: lookupWith(),
  });
  for (let sent = 0; sent < 2; sent++) await get(transport);
  pausedMs = HOUR_MS;
  for (let sent = 0; sent < 2; sent++) expect(await get(transport)).toHaveProperty('ConsumedCapacity');
  expect(signedAt.length).toBeGreaterThan(4);
});
