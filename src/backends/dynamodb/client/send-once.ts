import type * as Sdk from '@aws-sdk/client-dynamodb';
import { LostAnswer } from './lost-answer.js';

/** One request on its way down to the wire. */
export interface Sending {
  /** Ends the request. */
  readonly signal: AbortSignal;
  state: 'waiting' | 'sent' | 'answered';
  /** What went wrong with it. */
  failure?: unknown;
}

/** Where an input carries its sending: a copy of the input by a middleware of the client has it too. */
const SENDING = Symbol('headgate.sending');

interface Carrier {
  readonly [SENDING]?: Sending;
}

export function withSending<Input extends object>(input: Input, sending: Sending): Input {
  return { ...input, [SENDING]: sending };
}

/** The SDK's own name, step and priority: middleware that is placed before or after it finds its place. */
const RETRY = { name: 'retryMiddleware', step: 'finalizeRequest', priority: 'high' } as const;

type HttpRequest = Parameters<Sdk.DynamoDBClient['config']['requestHandler']['handle']>[0];

/**
 * The middleware of a client, without its retries: `ADD` is not idempotent, and a refund that is sent twice makes tokens.
 * A copy, so that the client keeps its retries for the requests of its owner. Middleware that repeats requests by itself
 * gets the first failure again, and nothing is sent.
 */
export function sendOnceStack(client: Sdk.DynamoDBClient): Sdk.DynamoDBClient['middlewareStack'] {
  const stack = client.middlewareStack.clone();
  stack.remove(RETRY.name);
  stack.add(
    (next) => async (request) => {
      const result = await next(request);
      // Tracing reads it.
      const { $metadata } = result.output as { readonly $metadata?: { attempts?: number } };
      if ($metadata !== undefined) $metadata.attempts = 1;
      return result;
    },
    RETRY,
  );
  // Around what reads the answer: a failure is kept as its reader names it.
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
  // The last that is added at the last step is the innermost of all.
  stack.add(
    (next) => async (request) => {
      const sending = sendingOf(request.input);
      if (sending === undefined) return next(request);
      if (sending.state !== 'waiting') throw new LostAnswer('a middleware of the client sends requests twice');
      sending.state = 'sent';
      const { signal: abortSignal } = sending;
      // As the SDK's own last step does it for a request with options: a handler that serves all requests has none.
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
