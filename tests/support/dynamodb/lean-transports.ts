import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Failure, failureOf } from '../../../src/backends/dynamodb/client/failures.js';
import { leanTransport, type LeanInternals } from '../../../src/backends/dynamodb/client/lean/lean-transport.js';
import type { SettingsPackages } from '../../../src/backends/dynamodb/client/lean/provider-chain.js';
import type { Transport } from '../../../src/backends/dynamodb/client/transport.js';
import { deadlineIn } from '../../../src/machine-time.js';

export const FOUND_NOTHING = '{"ConsumedCapacity":{"TableName":"table","CapacityUnits":0.5}}';
export const GET = { TableName: 'table', Key: { PK: { S: 'a' }, SK: { S: 'b' } } };
const missing = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));
export const NONE: SettingsPackages = { providers: missing, client: missing };
/** What a test leaves open. */
export const closing: (() => void)[] = [];

/** Call it after each test. */
export function closeAll(): void {
  for (const close of closing.splice(0)) close();
}

export async function serve(answer: RequestListener): Promise<{ readonly server: Server; readonly endpoint: string }> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close().closeAllConnections());
  return { server, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

export function transportTo(endpoint: string, internals: Partial<LeanInternals> = {}): Transport {
  const transport = leanTransport({ endpoint, region: 'us-east-1' }, { packages: NONE, env: {}, ...internals });
  closing.push(() => transport.close());
  return transport;
}

export const get = async (transport: Transport, timeoutMs = 20_000) =>
  transport.send('GetItem', GET, deadlineIn(timeoutMs));
export const failureBy = async (sending: Promise<unknown>): Promise<Failure> =>
  failureOf(await sending.catch((error: unknown) => error), 'GetItem', 'table');

/** Looks every name up as this machine. `before` and `after` run at these moments of the look-up. */
export function lookupWith(
  before: () => void = () => {},
  after: () => void = () => {},
): NonNullable<LeanInternals['lookup']> {
  return (_, options, done) =>
    setImmediate(() => {
      before();
      if (options.all === true) done(null, [{ address: '127.0.0.1', family: 4 }]);
      else done(null, '127.0.0.1', 4);
      after();
    });
}
