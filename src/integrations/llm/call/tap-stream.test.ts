import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fakeClock } from '../../../testing/fake-clock.js';
import { type StreamEnd, tapStream } from './tap-stream.js';

/** What the caller does after it has read some chunks, and what the source does after its last chunk. */
interface Script {
  readonly chunks: number;
  readonly reads: number;
  readonly leaves: 'cancel' | 'abort' | 'idle' | 'reads-on';
  readonly source: 'closes' | 'fails';
  readonly enoughAt: number | null;
  readonly failsOnAbort: boolean;
}

const scripts: fc.Arbitrary<Script> = fc.record({
  chunks: fc.nat(6),
  reads: fc.nat(8),
  leaves: fc.constantFrom('cancel', 'abort', 'idle', 'reads-on'),
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
  return ({ cancel: 'cancelled', abort: 'aborted', idle: 'idle', 'reads-on': 'complete' } as const)[leaves];
}

describe('a stream that is passed on', () => {
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
        const options = { clock, idleMs: 1_000, signal: controller.signal, failsOnAbort };
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
        if (script.leaves === 'idle') await clock.advance(1_000);
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
    const options = { clock: fakeClock(), idleMs: 1_000, signal: controller.signal, failsOnAbort: true };
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
    };
    expect(await tapStream(new ReadableStream<number>(), observer, options).ended).toBe('aborted');
  });
});
