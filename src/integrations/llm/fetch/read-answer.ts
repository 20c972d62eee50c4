import { type CallEnd, NOTHING_SEEN } from '../call/call-end.js';
import { failureOfStatus } from '../call/failure.js';
import type { Sent } from '../call/limited-calls.js';
import { type StreamEnd, type StreamObserver, type TapOptions, tapStream } from '../call/tap-stream.js';
import { parseThrottle, statesWaitInHeaders, type Throttle } from '../throttle/parse-throttle.js';
import { usageStripper } from '../usage/strip-usage.js';
import { answerReader, streamReader, type UsageReader } from '../usage/usage-reader.js';
import { peekBody } from './peek-body.js';
import type { FetchedCall } from './read-fetch.js';

/** The answer of a provider as its caller gets it, and how it ends. */
export async function readAnswer(
  call: Pick<FetchedCall, 'api' | 'stripsUsage'>,
  answer: Response,
  options: TapOptions,
): Promise<Sent<Response>> {
  const { body } = answer;
  if (body === null) options.onClosed();
  if (!answer.ok) return readFailure(answer, options);
  if (body === null) return { value: answer, throttle: null, ended: Promise.resolve(endOf('complete', null)) };
  const isStream = /\bevent-stream\b/i.test(answer.headers.get('content-type') ?? '');
  const reader = isStream ? streamReader(call.api) : answerReader(call.api);
  const isStripped = isStream && call.stripsUsage;
  const { stream, ended } = tapStream(body, isStripped ? stripping(reader) : observing(reader), options);
  const value = likeAnswer(answer, stream);
  // The length of the body with what is left out of it. A proxy that states it would send too little.
  if (isStripped) value.headers.delete('content-length');
  return { value, throttle: null, ended: ended.then((how) => endOf(how, reader)) };
}

/** A refusal is read before it is passed on, where its headers do not say how long to wait. */
async function readFailure(answer: Response, options: TapOptions): Promise<Sent<Response>> {
  const { status, headers, body } = answer;
  const ended = Promise.resolve<CallEnd>({ kind: 'unanswered', failure: failureOfStatus(status) });
  const shown = { status, header: (name: string) => headers.get(name), headers };
  const receivedMs = options.clock.now();
  const pass = (whole: ReadableStream<Uint8Array> | null): Response =>
    whole === null ? answer : likeAnswer(answer, tapStream(whole, PASSING, options).stream);
  if (status !== 429 && status !== 400) return { value: pass(body), throttle: null, ended };
  if (statesWaitInHeaders(shown) || body === null) {
    return { value: pass(body), throttle: parseThrottle({ ...shown, body: null }, receivedMs), ended };
  }
  const { text, whole } = await peekBody(body, options.clock);
  const throttle: Throttle | null = parseThrottle({ ...shown, body: text }, receivedMs);
  return { value: pass(whole), throttle, ended };
}

/** Passes the bytes on, and wants to know nothing of them. */
const PASSING: StreamObserver<Uint8Array> = {
  onChunk: (chunk) => [chunk],
  onDone: () => [],
  hasEnough: () => false,
};

/** Passes the bytes on unchanged. */
function observing(reader: UsageReader): StreamObserver<Uint8Array> {
  const decoder = new TextDecoder();
  return {
    onChunk: (chunk) => {
      reader.write(decoder.decode(chunk, { stream: true }));
      return [chunk];
    },
    onDone: () => {
      reader.end();
      return [];
    },
    hasEnough: () => reader.isFinal,
  };
}

/** Passes the text on without the chunk that states the usage. */
function stripping(reader: UsageReader): StreamObserver<Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const stripper = usageStripper();
  const encode = (text: string): readonly Uint8Array[] => (text === '' ? [] : [encoder.encode(text)]);
  return {
    onChunk: (chunk) => {
      const text = decoder.decode(chunk, { stream: true });
      reader.write(text);
      return encode(stripper.write(text));
    },
    onDone: () => {
      // The first bytes of a character that was cut.
      const rest = stripper.write(decoder.decode());
      reader.end();
      return encode(rest + stripper.end());
    },
    hasEnough: () => reader.isFinal,
  };
}

function endOf(how: StreamEnd, reader: UsageReader | null): CallEnd {
  const usage = reader?.usage ?? null;
  if (usage !== null && reader?.isFinal === true) return { kind: 'stated', usage };
  const seen = reader?.seen ?? NOTHING_SEEN;
  return { kind: 'partial', usage, seen, failure: failureOf(how, reader?.isWhole === false) };
}

/** `isCut`: of a body that is complete, that it does not have the end of the answer. */
function failureOf(how: StreamEnd, isCut: boolean): Extract<CallEnd, { kind: 'partial' }>['failure'] {
  switch (how) {
    case 'complete':
    case 'enough':
      return isCut ? { kind: 'lost', status: null } : null;
    case 'cancelled':
    case 'aborted':
    case 'idle':
      return { kind: 'aborted', status: null };
    case 'failed':
      return { kind: 'lost', status: null };
  }
}

/**
 * An answer with another body. A new `Response` has no address, and that of @hono/node-server does not copy the
 * headers, which are immutable.
 */
function likeAnswer(answer: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers, url, redirected } = answer;
  const response = new Response(body, { status, statusText, headers: new Headers(headers) });
  Object.defineProperties(response, { url: { value: url }, redirected: { value: redirected } });
  return response;
}
