import type { DynamoDBClient, DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { InfrastructureError } from '../../core/errors.js';
import { ClockOffset } from './clock-offset.js';
import { type Deadline, timeLeftMs } from './deadline.js';
import type { Operation, Operations, Transport } from './transport.js';

type Sdk = typeof import('@aws-sdk/client-dynamodb');

export interface SdkOptions {
  /** A client of the caller's, with its own settings: it is not closed here. */
  readonly client?: DynamoDBClient;
  readonly region?: string;
  readonly endpoint?: string;
}

/** Longest time to make a connection: a host that does not answer must not use up the whole deadline. */
const CONNECT_MS = 500;
const MOST_SOCKETS = 256;

/** The AWS SDK, loaded when the first request goes out. Its own retries are off: `ADD` is not idempotent. */
export function sdkTransport(options: SdkOptions): Transport {
  let offset = new ClockOffset();
  let opened: Promise<{ readonly sdk: Sdk; readonly client: DynamoDBClient }> | null = null;

  const open = async () => {
    const sdk = await loadSdk();
    const client = options.client ?? new sdk.DynamoDBClient(clientConfig(options));
    offset = watchedDate(client);
    return { sdk, client };
  };

  return {
    async send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline) {
      opened ??= open();
      const { sdk, client } = await opened.catch((error: unknown) => {
        opened = null;
        throw error;
      });
      // Each command is made of its input alone: the pair of name and class is the SDK's own.
      const Command = sdk[`${operation}Command`] as unknown as new (input: Operations[Op][0]) => never;
      const abortSignal = AbortSignal.timeout(Math.max(1, Math.ceil(timeLeftMs(deadline))));
      return client.send(new Command(input), { abortSignal }) as Promise<Operations[Op][1]>;
    },
    clockOffsetMs: () => offset.ms,
    close() {
      const client = opened;
      opened = null;
      if (options.client === undefined) void client?.then((open) => open.client.destroy()).catch(() => {});
    },
  };
}

function clientConfig({ region, endpoint }: SdkOptions): DynamoDBClientConfig {
  return {
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      httpAgent: { keepAlive: true, maxSockets: MOST_SOCKETS },
      httpsAgent: { keepAlive: true, maxSockets: MOST_SOCKETS },
    },
  };
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-dynamodb');
  } catch (cause) {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      'The DynamoDB store needs the AWS SDK. Run: npm install @aws-sdk/client-dynamodb',
      { cause },
    );
  }
}

/** Limiters that share a client share what it learns: its middleware can stand there once only. */
const watched = new WeakMap<DynamoDBClient, ClockOffset>();

/** Every answer carries the store's time. */
function watchedDate(client: DynamoDBClient): ClockOffset {
  const known = watched.get(client);
  if (known !== undefined) return known;
  const offset = new ClockOffset();
  watched.set(client, offset);
  client.middlewareStack.add(
    (next) => async (request) => {
      const sentAtMs = Date.now();
      const result = await next(request);
      const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
      offset.observe(headers?.['date'], sentAtMs, Date.now());
      return result;
    },
    { step: 'deserialize', name: 'headgateWatchesDate', override: true, priority: 'low' },
  );
  return offset;
}
