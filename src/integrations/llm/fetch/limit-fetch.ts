import { LimitedCalls } from '../call/limited-calls.js';
import { type LlmOptions, resolveLlmOptions } from '../call/llm-options.js';
import { deniedResponse, isDenial } from './denied-response.js';
import { followSignal } from './follow-signal.js';
import { readAnswer } from './read-answer.js';
import { readFetch, withSignal } from './read-fetch.js';

type Fetch = typeof fetch;

/** Options of `limitFetch`. */
export interface LimitFetchOptions extends LlmOptions {
  /**
   * Whether streamed chat completions ask for the usage (`stream_options.include_usage`). The chunk that states it is not
   * passed on to a caller that did not ask for it. False: such calls keep their estimate. Default: true.
   */
  readonly includeUsage?: boolean;
}

/** A `fetch` that sends calls of models under limits. */
export interface LimitedFetch extends Fetch {
  /** Resolves when every call that was begun has ended its lease. Await it before a function is frozen or a process ends. */
  settled(): Promise<void>;
}

/**
 * A `fetch` for the clients of OpenAI, Anthropic, Google and others: calls of models wait for their limits, hold an
 * estimate while they run, and end with what the provider says that they cost. A denied call gets an answer with the
 * status 429, which clients understand. Other requests pass unchanged.
 */
export function limitFetch(send: Fetch, options: LimitFetchOptions): LimitedFetch {
  const resolved = resolveLlmOptions(options, ['includeUsage']);
  const { includeUsage = true } = options;
  const { clock, idleMs } = resolved;
  const calls = new LimitedCalls(resolved);

  const limitedFetch: Fetch = async (...args) => {
    const call = await readFetch(args, includeUsage);
    if (call === null) return send(...args);
    const { sized, signal: leader, ...sending } = call;
    const { signal, unfollow } = followSignal(leader);
    const tapping = { clock, idleMs, signal, failsOnAbort: true, onClosed: unfollow };
    try {
      return await calls.run(sized, signal, async () =>
        readAnswer(sending, await send(...withSignal(sending.args, signal)), tapping),
      );
    } catch (error) {
      unfollow();
      if (isDenial(error)) return deniedResponse(error, call.api);
      throw error;
    }
  };
  return Object.assign(limitedFetch, { settled: () => calls.settled() });
}
