import { type CallEnd, NOTHING_SEEN } from './call/call-end.js';
import type { CallFailure } from './call/failure.js';
import { LimitedCalls, type Sent } from './call/limited-calls.js';
import { type LlmOptions, resolveLlmOptions } from './call/llm-options.js';
import { type StreamEnd, tapStream } from './call/tap-stream.js';
import type { SizedCall } from './request/llm-call.js';
import { boundOfInput } from './request/input-bound.js';
import { sizeOfPrompt } from './request/prompt-size.js';
import { parseThrottle, type Throttle } from './throttle/parse-throttle.js';
import { tokenCount, type Usage } from './usage/usage.js';

type Count = number | undefined;

/** The usage of the AI SDK: every count may be missing. */
interface ModelUsage {
  readonly inputTokens: { readonly total: Count; readonly cacheRead: Count; readonly cacheWrite: Count };
  readonly outputTokens: { readonly total: Count };
}

/** The parts of a call that are read. */
interface ModelParams {
  readonly prompt: unknown;
  readonly tools?: unknown;
  readonly responseFormat?: unknown;
  readonly maxOutputTokens?: number | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

interface Model {
  readonly modelId: string;
}

/** A part of a stream of the AI SDK. */
interface StreamPart {
  readonly type: string;
}

/** A middleware for `wrapLanguageModel` of ai 6 and ai 7, typed by its shape: neither package is needed to compile. */
export interface ModelLimits {
  readonly specificationVersion: 'v3';
  /** Limits one call that returns its result at once. */
  wrapGenerate<R extends { readonly usage: ModelUsage }>(options: {
    readonly doGenerate: () => PromiseLike<R>;
    readonly params: ModelParams;
    readonly model: Model;
  }): Promise<R>;
  /** Limits one call that streams its result. */
  wrapStream<P extends StreamPart, R extends { stream: ReadableStream<P> }>(options: {
    readonly doStream: () => PromiseLike<R>;
    readonly params: ModelParams;
    readonly model: Model;
  }): Promise<R>;
  /** Resolves when every call that was begun has ended its lease. */
  settled(): Promise<void>;
}

/** Limits the calls of a model of the AI SDK. A denied call rejects with `RateLimitExceeded`. */
export function limitModel(options: LlmOptions): ModelLimits {
  const resolved = resolveLlmOptions(options);
  const calls = new LimitedCalls(resolved);
  const { clock, idleMs } = resolved;

  /** Reads the refusal out of the error, and passes the error on after the pause is stored. */
  const send = async <T>(work: () => Promise<Sent<{ readonly value: T }>>): Promise<Sent<Outcome<T>>> => {
    try {
      return await work();
    } catch (error) {
      const throttle = throttleIn(error, clock.now());
      if (throttle === null) throw error;
      const failure: CallFailure = { kind: 'refused', status: 429 };
      return { value: { error }, throttle, ended: Promise.resolve({ kind: 'unanswered', failure }) };
    }
  };

  return {
    specificationVersion: 'v3',
    settled: () => calls.settled(),

    wrapGenerate: async ({ doGenerate, params, model }) => {
      const outcome = await calls.run(sizeOf(model, params, false), params.abortSignal ?? null, () =>
        send(async () => {
          const value = await doGenerate();
          return {
            value: { value },
            throttle: null,
            ended: Promise.resolve(endOf('complete', value.usage ?? null)),
          };
        }),
      );
      return valueOf(outcome);
    },

    wrapStream: async <P extends StreamPart, R extends { stream: ReadableStream<P> }>({
      doStream,
      params,
      model,
    }: {
      readonly doStream: () => PromiseLike<R>;
      readonly params: ModelParams;
      readonly model: Model;
    }): Promise<R> => {
      const signal = params.abortSignal ?? null;
      const outcome = await calls.run(sizeOf(model, params, true), signal, () =>
        send(async () => {
          const result = await doStream();
          const seen = seenIn<P>();
          const { stream, ended } = tapStream(result.stream, seen.observer, {
            clock,
            idleMs,
            signal,
            failsOnAbort: false,
            onClosed: () => {},
          });
          const value: R = { ...result, stream };
          const end = ended.then((how) => endOf(how, seen.usage(), seen));
          return { value: { value }, throttle: null, ended: end };
        }),
      );
      return valueOf(outcome);
    },
  };
}

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

function valueOf<T>(outcome: Outcome<T>): T {
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

function sizeOf({ modelId }: Model, params: ModelParams, stream: boolean): SizedCall {
  const { prompt, tools, responseFormat, maxOutputTokens } = params;
  return {
    call: { api: 'ai-sdk', model: modelId, stream, user: null },
    prompt: sizeOfPrompt([prompt, tools]),
    maxInputTokens: boundOfInput([prompt, tools, responseFormat]),
    maxOutputTokens: maxOutputTokens ?? null,
  };
}

/** The parts of a stream that contain output. */
const DELTAS: ReadonlySet<string> = new Set(['text-delta', 'reasoning-delta', 'tool-input-delta']);

function seenIn<P extends StreamPart>() {
  let usage: ModelUsage | null = null;
  let [characters, bytes] = [0, 0];
  let hasFinished = false;
  let hasFailed = false;
  return {
    usage: () => usage,
    output: () => ({ characters, bytes }),
    /** A provider that loses its connection may end the stream as if it were complete. */
    isCut: () => hasFailed || !hasFinished,
    observer: {
      onChunk: (part: P) => {
        const { usage: stated, delta } = part as { readonly usage?: ModelUsage; readonly delta?: unknown };
        if (part.type === 'finish') usage = stated ?? null;
        hasFinished ||= part.type === 'finish';
        hasFailed ||= part.type === 'error';
        if (DELTAS.has(part.type) && typeof delta === 'string') {
          characters += delta.length;
          bytes += Buffer.byteLength(delta);
        }
        return [part];
      },
      onDone: () => [],
      hasEnough: () => usage !== null,
      hasFailed: () => hasFailed,
    },
  };
}

/** `seen`: what passed of a stream. */
function endOf(
  how: StreamEnd,
  stated: ModelUsage | null,
  seen: Pick<ReturnType<typeof seenIn>, 'output' | 'isCut'> | null = null,
): CallEnd {
  const usage = stated === null ? null : usageOf(stated);
  if (usage !== null) return { kind: 'stated', usage };
  const hasEnded = how === 'complete' || how === 'enough';
  const failure: CallFailure = { kind: hasEnded || how === 'failed' ? 'lost' : 'aborted', status: null };
  const isComplete = hasEnded && seen?.isCut() !== true;
  return {
    kind: 'partial',
    usage: null,
    seen: seen?.output() ?? NOTHING_SEEN,
    failure: isComplete ? null : failure,
  };
}

/** null: a total is missing, so that the cost is not known. */
function usageOf({ inputTokens, outputTokens }: ModelUsage): Usage | null {
  // Some providers say by NaN or null that a count is not known.
  const [input, output] = [tokenCount(inputTokens?.total), tokenCount(outputTokens?.total)];
  if (input === null || output === null) return null;
  return {
    inputTokens: input,
    cachedInputTokens: tokenCount(inputTokens.cacheRead) ?? 0,
    cacheWriteTokens: tokenCount(inputTokens.cacheWrite) ?? 0,
    outputTokens: output,
  };
}

/** The refusal in an error of a provider of the AI SDK. */
function throttleIn(error: unknown, nowMs: number): Throttle | null {
  if (typeof error !== 'object' || error === null) return null;
  const { statusCode, responseHeaders, responseBody } = error as {
    readonly statusCode?: unknown;
    readonly responseHeaders?: Readonly<Record<string, string>>;
    readonly responseBody?: unknown;
  };
  if (typeof statusCode !== 'number') return null;
  const headers = new Headers(responseHeaders ?? {});
  const body = typeof responseBody === 'string' ? responseBody : null;
  return parseThrottle({ status: statusCode, header: (name) => headers.get(name), headers, body }, nowMs);
}
