import { InfrastructureError } from '../../core/errors.js';
import { awsFailure } from './aws-failure.js';

export interface AwsOptions {
  readonly region?: string;
  readonly endpoint?: string;
  /** How long one call may take, with what the SDK repeats of it. */
  readonly callMs?: number;
  /** How often the SDK sends a request that may succeed the next time. */
  readonly attempts?: number;
}

const CALL_MS = 30_000;
const REQUEST_MS = 10_000;
const CONNECT_MS = 3_000;
const ATTEMPTS = 5;

/** Settings that every client shares. Everything that is sent may be sent twice, so that the SDK repeats by itself. */
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

/** A client of an SDK that is loaded with the first call. */
export interface LazyClient<Sdk, Client> {
  /** Sends within the time; what fails is an error of Headgate's. */
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
