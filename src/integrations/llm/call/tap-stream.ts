import type { Clock } from '../../../clock.js';
import type { EpochMs } from '../../../core/units.js';
import { whenDropped } from '../../when-dropped.js';

/**
 * How the reading of a stream ended. `idle`: its reader asked for nothing for a long time, or has left it. `enough`:
 * the observer has what it needs.
 */
export type StreamEnd = 'complete' | 'enough' | 'cancelled' | 'aborted' | 'failed' | 'idle';

/** Sees the chunks of a stream as they pass. */
export interface StreamObserver<T> {
  /** The chunks to pass on in place of this one. Must not throw. */
  readonly onChunk: (chunk: T) => readonly T[];
  /** The source has ended: what is left to pass on. */
  readonly onDone: () => readonly T[];
  /** True: the rest of the stream is of no interest to the observer. */
  readonly hasEnough: () => boolean;
  /** True: a failure has passed as a chunk, at which many callers stop reading. Left out: failures end the stream. */
  readonly hasFailed?: () => boolean;
}

export interface TapOptions {
  readonly clock: Required<Clock>;
  readonly idleMs: number;
  readonly signal: AbortSignal | null;
  /** Whether the stream fails when the signal aborts, as the body of `fetch` does. Otherwise it follows its source. */
  readonly failsOnAbort: boolean;
  /** Called once nothing can be read any more. That may be later than the end of the call. */
  readonly onClosed: () => void;
}

/** A reader that has released a stream for this long, or has read nothing since a failure passed, does not come back. */
const LEFT_MS = 5_000;

export interface Tapped<T> {
  readonly stream: ReadableStream<T>;
  /** Resolves once, at the first end. */
  readonly ended: Promise<StreamEnd>;
}

/**
 * Passes a stream on, chunk by chunk, and tells how it ended. Reads only what is read from it. Clients that stop early
 * do not always cancel the stream: the signal of the call, the collection of the stream as garbage, and the time since
 * the last read end it too. No function of this scope may refer to the stream, or it would not be collected: neither
 * may the signal, by whose listeners some clients keep what they read.
 */
export function tapStream<T>(source: ReadableStream<T>, observer: StreamObserver<T>, options: TapOptions): Tapped<T> {
  const { clock, idleMs, signal, failsOnAbort, onClosed } = options;
  const reader = source.getReader();
  const over = new AbortController();
  let readMs: EpochMs = clock.now();
  let how: StreamEnd = 'complete';
  let isBegun = false;
  let isWaiting = false;
  let tapped: WeakRef<ReadableStream<T>> | null = null;
  const ended = new Promise<StreamEnd>((resolve) => {
    over.signal.addEventListener('abort', () => resolve(how));
  });
  const end = (by: StreamEnd): void => {
    if (over.signal.aborted) return;
    how = by;
    over.abort();
    signal?.removeEventListener('abort', onAbort);
  };
  const onAbort = (): void => end('aborted');
  if (signal?.aborted === true) end('aborted');
  else signal?.addEventListener('abort', onAbort);
  void endWhenIdle();

  const stream = new ReadableStream<T>(
    {
      pull: async (controller) => {
        isBegun = true;
        readMs = clock.now();
        try {
          // A piece from which nothing is left to pass on does not answer the reader.
          for (let passed = 0; passed === 0;) {
            isWaiting = true;
            const { done, value } = await (failsOnAbort ? readUnlessAborted(reader, signal) : reader.read());
            isWaiting = false;
            readMs = clock.now();
            const chunks = done ? observer.onDone() : observer.onChunk(value);
            for (const chunk of chunks) controller.enqueue(chunk);
            passed = chunks.length;
            if (done) {
              end('complete');
              controller.close();
              onClosed();
              return;
            }
            if (observer.hasEnough()) end('enough');
          }
        } catch (error) {
          end(signal?.aborted === true ? 'aborted' : 'failed');
          controller.error(error);
          reader.cancel(error).catch(() => {});
          onClosed();
        }
      },
      cancel: async (reason) => {
        end('cancelled');
        onClosed();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  tapped = new WeakRef(stream);
  whenDropped(stream, () => {
    end('cancelled');
    reader.cancel().catch(() => {});
    onClosed();
  });
  return { stream, ended };

  /** Clients that stop early may release their lock, and do no more. */
  function isReleased(): boolean {
    return isBegun && tapped?.deref()?.locked === false && clock.now() - readMs >= LEFT_MS;
  }

  function longestIdleMs(): number {
    return observer.hasFailed?.() === true ? Math.min(idleMs, LEFT_MS) : idleMs;
  }

  async function endWhenIdle(): Promise<void> {
    try {
      // A reader that waits for a slow source is not idle.
      for (let restMs = idleMs; restMs > 0; restMs = isWaiting ? idleMs : readMs + longestIdleMs() - clock.now()) {
        await clock.sleep(Math.min(restMs, LEFT_MS), over.signal, { background: true });
        if (isReleased()) break;
      }
      end('idle');
    } catch {
      // The stream has ended.
    }
  }
}

/** Some bodies of Node's `fetch` neither end nor fail if they are aborted after their last byte. */
async function readUnlessAborted<T>(
  reader: ReadableStreamDefaultReader<T>,
  signal: AbortSignal | null,
): ReturnType<typeof reader.read> {
  if (signal === null) return reader.read();
  // A signal may outlive many chunks: its listener is removed after each of them.
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { signal: over.signal });
  });
  try {
    return await Promise.race([reader.read(), aborted]);
  } finally {
    over.abort();
  }
}
