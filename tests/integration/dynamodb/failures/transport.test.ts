import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { dynamodb } from '../../../../src/backends/dynamodb/index.js';

/** `sdk` in the runs on the SDK's client (`SDK_CLIENT` in `vitest.config.ts`). */
const EXPECTED = process.env['HEADGATE_TEST_CLIENT'] === 'sdk' ? /^aws-sdk-js\// : /^headgate$/;

test('a store that is opened without a client sends its requests by the transport of this run', async () => {
  const agents: (string | undefined)[] = [];
  const server = createServer((request, answer) => {
    agents.push(request.headers['user-agent']);
    answer.writeHead(400).end('{"__type":"com.amazon.coral.service#AccessDeniedException"}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = dynamodb({ table: 'limits', endpoint });
  await expect(store.open(20_000)).rejects.toMatchObject({ code: 'backend.denied' });
  expect(agents).toEqual([expect.stringMatching(EXPECTED)]);
  await store.close();
  server.close().closeAllConnections();
});
