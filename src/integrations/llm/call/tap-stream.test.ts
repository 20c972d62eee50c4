import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fakeClock } from '../../../testing/fake-clock.js';
import { type StreamEnd, tapStream } from './tap-stream.js';

/** What the caller does after it has read some chunks, and what the source does after its last chunk. */
interface Script {
  readonly chunks: number;
  readonly reads: number;
  readonly leaves: 'cancel' | 'abort' | 'release' | 'idle' | 'reads-on';
  readonly source: 'closes' | 'fails';
  readonly enoughAt: number | null;
  readonly failsOnAbort: boolean;
}

const scripts: fc.Arbitrary<Script> = fc.record({
  chunks: fc.nat(6),
  reads: fc.nat(8),
  leaves: fc.constantFrom('cancel', 'abort', 'release', 'idle', 'reads-on'),
  source: fc.constantFrom('closes', 'fails'),
  enoughAt: fc.option(fc.nat(6)),
  failsOnAbort: fc.boolean(),
});

function sourceOf({ chunks, source }: Script): ReadableStream<number> {
  let made = 0;
  return new ReadableStream<number>(
    {
      pull: (controller) => {
        if (made < chunks) controller.enqueue(made++);
        else if (source === 'closes') controller.close();
        else controller.error(new Error('broken'));
      },
    },
    { highWaterMark: 0 },
  );
}

/** The first thing that ends the stream. */
function expectedEnd({ chunks, reads, leaves, source, enoughAt }: Script): StreamEnd {
  const total = leaves === 'reads-on' ? chunks + 1 : reads;
  if (enoughAt !== null && enoughAt < Math.min(total, chunks)) return 'enough';
  if (total > chunks) return source === 'closes' ? 'complete' : 'failed';
  const ends = {
    cancel: 'cancelled',
    abort: 'aborted',
    release: 'idle',
    idle: 'idle',
    'reads-on': 'complete',
  } as const;
  return ends[leaves];
}

describe('a stream that is passed on', () => {
  test('a reader that releases the stream and comes back in time reads on, and the stream does not end', async () => {
    const clock = fakeClock();
    const script = { chunks: 3, source: 'closes' } as Script;
    const observer = { onChunk: (chunk: number) => [chunk], onDone: () => [], hasEnough: () => false };
    const options = { clock, idleMs: 60_000, signal: null, failsOnAbort: true, onClosed: () => {} };
    const { stream, ended } = tapStream(sourceOf(script), observer, options);
    const first = stream.getReader();
    await first.read();
    first.releaseLock();
    await clock.advance(4_999);
    const rest: number[] = [];
    for await (const chunk of stream) rest.push(chunk);
    expect([rest, await ended]).toEqual([[1, 2], 'complete']);
  });

  test('a reader that waits longer than idleMs for its source is not idle, and one that then reads no more is', async () => {
    const clock = fakeClock();
    let source: ReadableStreamDefaultController<number> | undefined;
    const observer = { onChunk: (chunk: number) => [chunk], onDone: () => [], hasEnough: () => false };
    const options = { clock, idleMs: 60_000, signal: null, failsOnAbort: true, onClosed: () => {} };
    const { stream, ended } = tapStream(
      new ReadableStream<number>({ start: (made) => void (source = made) }),
      observer,
      options,
    );
    const reading = stream.getReader().read();
    let how: StreamEnd | null = null;
    void ended.then((by) => (how = by));
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000);
    source?.enqueue(1);
    expect(await reading).toEqual({ done: false, value: 1 });
    await clock.advance(59_999);
    expect(how).toBeNull();
    await clock.advance(1);
    expect(how).toBe('idle');
  });

  test('a reader that reads nothing for 5 s after a failure has passed is idle, and one that reads on is not', async () => {
    for (const readsOn of [false, true]) {
      const clock = fakeClock();
      const script = { chunks: 3, source: 'closes' } as Script;
      const observer = {
        onChunk: (chunk: number) => [chunk],
        onDone: () => [],
        hasEnough: () => false,
        hasFailed: () => true,
      };
      const options = { clock, idleMs: 60_000, signal: null, failsOnAbort: false, onClosed: () => {} };
      const { stream, ended } = tapStream(sourceOf(script), observer, options);
      const reader = stream.getReader();
      let how: StreamEnd | null = null;
      void ended.then((by) => (how = by));
      await reader.read();
      await clock.advance(4_999);
      if (readsOn) await reader.read();
      await clock.advance(1);
      expect(how).toBe(readsOn ? null : 'idle');
      await reader.cancel();
    }
  });

  test('the stream ends once, by the first thing that ends it, with the chunks of its source, and leaves no listener', async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const clock = fakeClock();
        const controller = new AbortController();
        let seen = 0;
        const observer = {
          onChunk: (chunk: number) => [(seen = chunk + 1) - 1],
          onDone: () => [],
          hasEnough: () => script.enoughAt !== null && seen > script.enoughAt,
        };
        const { failsOnAbort } = script;
        let closed = 0;
        const onClosed = (): void => void (closed += 1);
        const options = { clock, idleMs: 60_000, signal: controller.signal, failsOnAbort, onClosed };
        const { stream, ended } = tapStream(sourceOf(script), observer, options);
        const reader = stream.getReader();
        const got: number[] = [];
        const total = script.leaves === 'reads-on' ? script.chunks + 1 : script.reads;
        for (let read = 0; read < total; read++) {
          const { value } = await reader.read().catch(() => ({ value: undefined }));
          if (value !== undefined) got.push(value);
        }
        if (script.leaves === 'cancel') await reader.cancel().catch(() => {});
        if (script.leaves === 'abort') controller.abort(new Error('gone'));
        if (script.leaves === 'release') reader.releaseLock();
        // A reader that leaves before its first read has not begun.
        if (script.leaves === 'release') await clock.advance(total === 0 ? 60_000 : 5_000);
        if (script.leaves === 'idle') await clock.advance(60_000);
        expect(closed).toBe(script.leaves === 'cancel' || total > script.chunks ? 1 : 0);
        expect(await ended).toBe(expectedEnd(script));
        expect(got).toEqual(Array.from({ length: Math.min(total, script.chunks) }, (_, at) => at));
        expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
        expect(clock.sleepers).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  test('a source that neither ends nor fails after an abort fails for its reader, if it is told so', async () => {
    const controller = new AbortController();
    const observer = { onChunk: (chunk: number) => [chunk], onDone: () => [], hasEnough: () => false };
    const options = {
      clock: fakeClock(),
      idleMs: 1_000,
      signal: controller.signal,
      failsOnAbort: true,
      onClosed: () => {},
    };
    const { stream, ended } = tapStream(new ReadableStream<number>(), observer, options);
    const reading = stream.getReader().read();
    controller.abort(new Error('gone'));
    await expect(reading).rejects.toThrow('gone');
    expect(await ended).toBe('aborted');
  });

  test('a signal that was aborted before ends the stream at once', async () => {
    const observer = { onChunk: (chunk: number) => [chunk], onDone: () => [], hasEnough: () => false };
    const options = {
      clock: fakeClock(),
      idleMs: 1_000,
      signal: AbortSignal.abort(new Error('gone')),
      failsOnAbort: true,
      onClosed: () => {},
    };
    expect(await tapStream(new ReadableStream<number>(), observer, options).ended).toBe('aborted');
  });
});
