import type * as Sdk from '@aws-sdk/client-dynamodb';
import { LostAnswer } from './lost-answer.js';

/** The state of one request in the middleware stack. */
export interface Sending {
  /** Aborts the request. */
  readonly signal: AbortSignal;
  state: 'waiting' | 'sent' | 'answered';
  /** The first failure of the request. */
  failure?: unknown;
}

/** The property of an input that carries its sending. A copy of the input that middleware makes has it too. */
const SENDING = Symbol('headgate.sending');

interface Carrier {
  readonly [SENDING]?: Sending;
}

export function withSending<Input extends object>(input: Input, sending: Sending): Input {
  return { ...input, [SENDING]: sending };
}

/** The SDK's own name, step and priority, so that middleware relative to `retryMiddleware` finds its position. */
const RETRY = { name: 'retryMiddleware', step: 'finalizeRequest', priority: 'high' } as const;

type HttpRequest = Parameters<Sdk.DynamoDBClient['config']['requestHandler']['handle']>[0];

/**
 * The middleware of a client without its retries: `ADD` is not idempotent, and a refund that is sent twice creates
 * tokens. The stack is a copy, so that the client keeps its retries for its owner's requests. Middleware that repeats
 * requests by itself gets the first failure again, and nothing is sent.
 */
export function sendOnceStack(client: Sdk.DynamoDBClient): Sdk.DynamoDBClient['middlewareStack'] {
  const stack = client.middlewareStack.clone();
  stack.remove(RETRY.name);
  stack.add(
    (next) => async (request) => {
      const result = await next(request);
      // Tracing tools read the number of attempts.
      const { $metadata } = result.output as { readonly $metadata?: { attempts?: number } };
      if ($metadata !== undefined) $metadata.attempts = 1;
      return result;
    },
    RETRY,
  );
  // Outside of the deserializer, so that the stored failure is the one that the deserializer threw.
  stack.add(
    (next) => async (request) => {
      const sending = sendingOf(request.input);
      if (sending?.failure !== undefined) throw sending.failure;
      try {
        return await next(request);
      } catch (error) {
        if (sending !== undefined) sending.failure = error;
        throw error;
      }
    },
    { step: 'deserialize', priority: 'high' },
  );
  // The middleware that is added last at the last step is the innermost.
  stack.add(
    (next) => async (request) => {
      const sending = sendingOf(request.input);
      if (sending === undefined) return next(request);
      if (sending.state !== 'waiting') throw new LostAnswer('a middleware of the client sends requests twice');
      sending.state = 'sent';
      const { signal: abortSignal } = sending;
      // As the SDK's own last step does for a request with options. The cached handler has no options.
      const sent = await client.config.requestHandler.handle(request.request as HttpRequest, { abortSignal });
      sending.state = 'answered';
      return { ...sent, output: undefined as never };
    },
    { step: 'deserialize', priority: 'low' },
  );
  return stack;
}

function sendingOf(input: object): Sending | undefined {
  return (input as Carrier)[SENDING];
}
