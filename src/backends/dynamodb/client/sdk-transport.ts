import type * as Sdk from '@aws-sdk/client-dynamodb';
import { InfrastructureError } from '../../../core/errors.js';
import { type Deadline, timeLeftMs } from '../../../machine-time.js';
import { readAnswerError } from './lost-answer.js';
import { type Sending, sendOnceStack, withSending } from './send-once.js';
import { StoreClock } from './store-clock.js';
import type { Operation, Operations, Transport } from './transport.js';

/** How requests reach DynamoDB. */
export interface SdkOptions {
  /**
   * The caller's client. Its settings apply, except retries, which are off. The store does not close it. Without a
   * client, requests are signed and sent without the SDK.
   */
  readonly client?: Sdk.DynamoDBClient;
  /** The region of the table. Default: `AWS_REGION`, `AWS_DEFAULT_REGION`, then the region of the profile. */
  readonly region?: string;
  /** The URL of DynamoDB. Default: `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`, then the host of the region. */
  readonly endpoint?: string;
}

interface Opened {
  readonly sdk: typeof Sdk;
  readonly client: Sdk.DynamoDBClient;
  readonly stack: Sdk.DynamoDBClient['middlewareStack'];
}

export type LoadSdk = () => Promise<typeof Sdk>;

/** The caller's client of the AWS SDK, without its retries. The rest of the SDK is loaded with the first request. */
export function sdkTransport({ client }: Required<Pick<SdkOptions, 'client'>>, load: LoadSdk = importSdk): Transport {
  let clock: StoreClock | null = null;
  /** Controllers that did not abort are reused by later requests. */
  const unused: AbortController[] = [];
  const handlers = new Map<Operation, Handler>();
  let opened: Promise<Opened> | null = null;

  const open = async () => {
    const sdk = await loadSdk(load);
    clock = clockOf(client);
    return { sdk, client, stack: sendOnceStack(client) };
  };
  const ready = async () => {
    opened ??= open();
    try {
      return await opened;
    } catch (error) {
      opened = null;
      throw error;
    }
  };

  return {
    async load() {
      await ready();
    },
    async send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline) {
      const opening = await ready();
      let handle = handlers.get(operation);
      if (handle === undefined) handlers.set(operation, (handle = handlerOf(opening, operation, input)));
      const late = unused.pop() ?? new AbortController();
      const sending: Sending = { signal: late.signal, state: 'waiting' };
      let timer: ReturnType<typeof setTimeout> | undefined;
      const ended = new Promise<never>((_, reject) => {
        // Not AbortSignal.timeout: it also fires for answered requests, which costs about 20 microseconds each.
        timer = setTimeout(
          () => {
            late.abort();
            // The call ends now, whatever else the SDK still does, such as waiting for another attempt.
            reject(requestEnded());
          },
          Math.max(1, Math.ceil(timeLeftMs(deadline))),
        );
      });
      try {
        const { output } = await Promise.race([handle({ input: withSending(input, sending) }), ended]);
        return output;
      } catch (error) {
        throw sending.state === 'answered' ? readAnswerError(error) : error;
      } finally {
        clearTimeout(timer);
        if (!late.signal.aborted) unused.push(late);
      }
    },
    storeTimeMs: () => clock?.now() ?? null,
    isTimeInDoubt: () => clock?.isInDoubt ?? false,
    takeClockNews: () => clock?.takeNews() ?? null,
    close() {
      opened = null;
      handlers.clear();
    },
  };
}

/** What the SDK resolves from a command and the client's middleware: sends an input and returns the output. */
type Handler = (request: { readonly input: object }) => Promise<{ readonly output: object }>;

/**
 * Caching the handler saves time: the SDK resolves it for each request, which takes as long as signing it, unless the
 * request has no options and the client was configured with `cacheMiddleware`. Middleware that is added to a client
 * later is not used.
 */
function handlerOf<Op extends Operation>(
  { sdk, client, stack }: Opened,
  operation: Op,
  input: Operations[Op][0],
): Handler {
  // Each command class takes its input alone, and the SDK defines the pair of name and class.
  const Command = sdk[`${operation}Command`] as unknown as new (input: Operations[Op][0]) => Sdk.UpdateItemCommand;
  return new Command(input).resolveMiddleware(stack, client.config, {}) as unknown as Handler;
}

/** The error that the SDK itself throws for an aborted request. */
function requestEnded(): Error {
  const error = new Error('Request aborted');
  error.name = 'AbortError';
  return error;
}

/** Hidden from bundlers: an app that never opens a table must bundle without the peer dependency. */
export async function importSdk(name = '@aws-sdk/client-dynamodb'): Promise<typeof Sdk> {
  return (await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ name)) as typeof Sdk;
}

async function loadSdk(load: LoadSdk): Promise<typeof Sdk> {
  try {
    return await load();
  } catch (cause) {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      'A DynamoDB store with a client of your own needs the AWS SDK. Run: npm install @aws-sdk/client-dynamodb',
      { cause },
    );
  }
}

/** One clock for each client, however many stores use it: a client keeps the middleware that is added to it. */
const clocks = new WeakMap<Sdk.DynamoDBClient, StoreClock>();

function clockOf(client: Sdk.DynamoDBClient): StoreClock {
  const known = clocks.get(client);
  if (known !== undefined) return known;
  const clock = new StoreClock();
  clocks.set(client, clock);
  // Before the request is signed. The SDK corrects the signer's clock from any single answer, and only by minutes:
  // after the wall clock is set, a request would be refused first.
  client.middlewareStack.add(
    (next) => async (request) => {
      const nowMs = clock.now();
      if (nowMs !== null) client.config.systemClockOffset = nowMs - Date.now();
      return next(request);
    },
    { step: 'build', priority: 'low' },
  );
  // Every answer carries the store's time.
  client.middlewareStack.add(
    (next) => async (request) => {
      const observe = clock.startRequest();
      const result = await next(request);
      const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
      observe(headers?.['date']);
      return result;
    },
    { step: 'deserialize', priority: 'low' },
  );
  return clock;
}
