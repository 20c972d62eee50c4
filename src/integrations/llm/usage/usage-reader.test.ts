import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LlmApi } from '../request/llm-call.js';
import { answerReader, streamReader, type UsageReader } from './usage-reader.js';
import { usageStripper } from './strip-usage.js';

const usage = (inputTokens: number, outputTokens: number, cachedInputTokens = 0, cacheWriteTokens = 0) => ({
  inputTokens,
  cachedInputTokens,
  cacheWriteTokens,
  outputTokens,
});
const event = (data: unknown, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

/** A stream of each API with 30 input tokens, 4 of them cached, and 12 output tokens. */
const STREAMS: readonly (readonly [LlmApi, string, number])[] = [
  [
    'openai-chat',
    [
      event({ choices: [{ delta: { content: 'héllo' } }], usage: null }),
      event({ choices: [{ delta: {}, finish_reason: 'stop' }], usage: null }),
      event({
        choices: [],
        usage: {
          prompt_tokens: 30,
          completion_tokens: 12,
          prompt_tokens_details: { cached_tokens: 4 },
          completion_tokens_details: { reasoning_tokens: 5 },
        },
      }),
      event('[DONE]'),
    ].join(''),
    5,
  ],
  [
    'openai-responses',
    [
      event({ type: 'response.created', response: { id: 'r', usage: null } }, 'response.created'),
      event({ type: 'response.output_text.delta', delta: 'héllo' }),
      event({ type: 'response.output_text.done', text: 'héllo' }),
      event({
        type: 'response.completed',
        response: {
          usage: { input_tokens: 30, output_tokens: 12, total_tokens: 42, input_tokens_details: { cached_tokens: 4 } },
        },
      }),
    ].join(''),
    5,
  ],
  [
    'anthropic',
    [
      event(
        {
          type: 'message_start',
          message: {
            usage: { input_tokens: 26, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 1 },
          },
        },
        'message_start',
      ),
      event({ type: 'ping' }, 'ping'),
      event({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'héllo' } }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 12 } }),
      event({ type: 'message_stop' }, 'message_stop'),
    ].join(''),
    5,
  ],
  [
    'google',
    [
      event({ candidates: [{ content: { parts: [{ text: 'hé' }] } }], usageMetadata: { promptTokenCount: 30 } }),
      event({
        candidates: [{ content: { parts: [{ text: 'llo' }] }, finishReason: 'STOP' }],
        usageMetadata: {
          promptTokenCount: 30,
          cachedContentTokenCount: 4,
          candidatesTokenCount: 7,
          thoughtsTokenCount: 5,
          totalTokenCount: 42,
        },
      }),
    ].join(''),
    5,
  ],
];

function feed(reader: UsageReader, text: string, lengths: readonly number[]): void {
  for (let at = 0, piece = 0; at < text.length; piece++) {
    const length = lengths[piece % lengths.length] ?? 1;
    reader.write(text.slice(at, at + length));
    at += length;
  }
  reader.end();
}

const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
const endings = fc.constantFrom('\n', '\r\n', '\r');

describe('the usage of streams', () => {
  test.each(STREAMS)('the usage of a stream of %s is read from any division of its text', (api, text, characters) => {
    fc.assert(
      fc.property(lengths, endings, (pieces, ending) => {
        const reader = streamReader(api);
        feed(reader, text.replaceAll('\n', ending), pieces);
        expect(reader.usage).toEqual(usage(30, 12, 4));
        expect([reader.isFinal, reader.outputCharacters]).toEqual([true, characters]);
      }),
    );
  });

  test.each(STREAMS)('a stream of %s that is cut at any place is never final with another usage', (api, text) => {
    fc.assert(
      fc.property(fc.nat(text.length), lengths, (length, pieces) => {
        const reader = streamReader(api);
        for (let at = 0, piece = 0; at < length; piece++) {
          const next = Math.min(length, at + (pieces[piece % pieces.length] ?? 1));
          reader.write(text.slice(at, next));
          at = next;
        }
        if (reader.isFinal) expect(reader.usage).toEqual(usage(30, 12, 4));
      }),
    );
  });

  test.each(STREAMS)('malformed events between those of %s change nothing', (api, text) => {
    const junk = fc.constantFrom(
      'data: {"usage":\n\n',
      'data: not json\n\n',
      ': comment\n\n',
      'data\n\n',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
      'data: [1,2}\n\n',
      'data:\n\n',
      'retry: 5\n\n',
      `data: ${'\u0000'.repeat(50)}\n\n`,
    );
    fc.assert(
      fc.property(fc.array(junk, { maxLength: 4 }), lengths, (pieces, divided) => {
        const events = text.split(/(?<=\n\n)/);
        const mixed = events.map((part, at) => (pieces[at] ?? '') + part).join('');
        const reader = streamReader(api);
        feed(reader, mixed, divided);
        expect(reader.usage).toEqual(usage(30, 12, 4));
      }),
    );
  });

  test('a usage so far in every chunk is not final before the end of the stream', () => {
    const reader = streamReader('openai-chat');
    reader.write(event({ choices: [{ delta: {} }], usage: { prompt_tokens: 3, completion_tokens: 1 } }));
    expect([reader.usage, reader.isFinal]).toEqual([usage(3, 1), false]);
    reader.write(event('[DONE]'));
    expect(reader.isFinal).toBe(true);
  });

  test('a message of Anthropic that ends before its last event is not final', () => {
    const reader = streamReader('anthropic');
    reader.write(event({ type: 'message_start', message: { usage: { input_tokens: 30, output_tokens: 1 } } }));
    reader.end();
    expect([reader.usage, reader.isFinal]).toEqual([usage(30, 1), false]);
  });

  test('the output of a stream is counted while it runs', () => {
    const reader = streamReader('anthropic');
    reader.write('data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"abc');
    expect(reader.outputCharacters).toBe(3);
  });
});

describe('the usage of JSON answers', () => {
  test.each<readonly [LlmApi, object, ReturnType<typeof usage>]>([
    [
      'openai-chat',
      { choices: [{ message: { content: 'x' } }], usage: { prompt_tokens: 9, completion_tokens: 2 } },
      usage(9, 2),
    ],
    ['openai-embeddings', { data: [{ embedding: [0.1] }], usage: { prompt_tokens: 9, total_tokens: 9 } }, usage(9, 0)],
    ['openai-responses', { output: [], usage: { input_tokens: 9, output_tokens: 2 }, metadata: {} }, usage(9, 2)],
    [
      'anthropic',
      {
        content: [],
        usage: { input_tokens: 2, cache_creation_input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 5 },
      },
      usage(9, 5, 4, 3),
    ],
    [
      'google',
      { usageMetadata: { promptTokenCount: 9, toolUsePromptTokenCount: 3, candidatesTokenCount: 2 } },
      usage(12, 2),
    ],
  ])('the usage of an answer of %s is read from any division of its text', (api, answer, expected) => {
    fc.assert(
      fc.property(lengths, (pieces) => {
        const reader = answerReader(api);
        feed(reader, JSON.stringify(answer, null, 1), pieces);
        expect([reader.usage, reader.isFinal]).toEqual([expected, true]);
      }),
    );
  });

  test('a list of answers, as Google streams without events, has the usage of the last one', () => {
    const reader = answerReader('google');
    feed(
      reader,
      '[{"usageMetadata":{"promptTokenCount":3}},{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":8}}]',
      [7],
    );
    expect(reader.usage).toEqual(usage(3, 8));
  });

  test.each(['', 'not json', '{"usage":null}', '{"usage":{"prompt_tokens":-1}', '[]'])(
    'the answer %j has no usage',
    (text) => {
      const reader = answerReader('openai-chat');
      feed(reader, text, [3]);
      expect([reader.usage, reader.isFinal]).toEqual([null, false]);
    },
  );
});

describe('the chunk that states only the usage', () => {
  const content = event({ choices: [{ delta: { content: 'the word "usage":' } }], usage: null });
  const stated = event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } });

  test('only this chunk is left out, from any division of the text', () => {
    fc.assert(
      fc.property(lengths, endings, (pieces, ending) => {
        const text = [content, content, stated, event('[DONE]')].join('').replaceAll('\n', ending);
        const stripper = usageStripper();
        let passed = '';
        for (let at = 0, piece = 0; at < text.length; piece++) {
          const length = pieces[piece % pieces.length] ?? 1;
          passed += stripper.write(text.slice(at, at + length));
          at += length;
        }
        passed += stripper.end();
        expect(passed).toBe([content, content, event('[DONE]')].join('').replaceAll('\n', ending));
      }),
    );
  });

  test('an event of a megabyte is passed on before it is complete', () => {
    const stripper = usageStripper();
    const long = event({ choices: [{ delta: { content: 'x'.repeat(1_000_000) } }] });
    const first = stripper.write(long.slice(0, 500_000));
    expect(first.length).toBeGreaterThan(400_000);
    expect(first + stripper.write(long.slice(500_000)) + stripper.end()).toBe(long);
  });
});
