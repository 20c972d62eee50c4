import { InfrastructureError } from '../../core/errors.js';
import { awsFailure } from './aws-failure.js';

export interface AwsOptions {
  readonly region?: string;
  readonly endpoint?: string;
  /** The timeout of one call, including the SDK's retries. */
  readonly callMs?: number;
  /** How often the SDK sends a request that fails with a retryable error. */
  readonly attempts?: number;
}

const CALL_MS = 30_000;
const REQUEST_MS = 10_000;
const CONNECT_MS = 3_000;
const ATTEMPTS = 5;

/** Settings that all clients share. Every request is idempotent, so the SDK may retry it. */
export function clientConfig({ region, endpoint, attempts = ATTEMPTS }: AwsOptions) {
  return {
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    maxAttempts: attempts,
    requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: REQUEST_MS, throwOnRequestTimeout: true },
  };
}

interface Opened<Sdk, Client> {
  readonly sdk: Sdk;
  readonly client: Client;
}

/** An SDK client. The SDK is loaded by the first call. */
export interface LazyClient<Sdk, Client> {
  /** Sends with a timeout. Failures are errors of Headgate. */
  send<T>(what: string, request: (opened: Opened<Sdk, Client>, signal: AbortSignal) => Promise<T>): Promise<T>;
  close(): void;
}

export function lazyClient<Sdk, Client extends { destroy(): void }>(
  { callMs = CALL_MS }: AwsOptions,
  { peer, load, make }: { peer: string; load: () => Promise<Sdk>; make: (sdk: Sdk) => Client },
): LazyClient<Sdk, Client> {
  let opened: Promise<Opened<Sdk, Client>> | null = null;
  const open = async (): Promise<Opened<Sdk, Client>> => {
    const sdk = await load().catch((cause: unknown) => {
      const message = `This command needs the AWS SDK. Run: npm install ${peer}`;
      throw new InfrastructureError('infrastructure.missing-peer', message, { cause });
    });
    return { sdk, client: make(sdk) };
  };
  return {
    async send(what, request) {
      opened ??= open();
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), callMs);
      try {
        return await request(await opened, late.signal);
      } catch (error) {
        throw awsFailure(error, what);
      } finally {
        clearTimeout(timer);
      }
    },
    close() {
      void opened?.then(({ client }) => client.destroy()).catch(() => {});
    },
  };
}
