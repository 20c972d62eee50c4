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
        expect([reader.isFinal, reader.seen.characters]).toEqual([true, characters]);
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

  test.each(STREAMS)(
    'a stream of %s that a proxy ends before its last part is neither whole nor final',
    (api, text) => {
      const last = /finish_reason|finishReason|response\.completed|message_stop/.exec(text)?.index ?? 0;
      expect(last).toBeGreaterThan(0);
      for (let length = 0; length < last; length++) {
        const reader = streamReader(api);
        feed(reader, text.slice(0, length), [11]);
        expect([length, reader.isWhole, reader.isFinal]).toEqual([length, false, false]);
      }
      const reader = streamReader(api);
      feed(reader, text, [11]);
      expect(reader.isWhole).toBe(true);
    },
  );

  test('a reason that is an empty text, as some vendors send with every chunk, does not end an answer', () => {
    const reader = streamReader('openai-chat');
    reader.write('data: {"choices":[{"delta":{"content":"a"},"finish_reason":""}]}\n\n');
    reader.end();
    expect(reader.isWhole).toBe(false);
    const divided = streamReader('openai-chat');
    for (const character of 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n') divided.write(character);
    divided.end();
    expect(divided.isWhole).toBe(true);
  });

  test('a stream of Google whose prompt was blocked is whole', () => {
    const reader = streamReader('google');
    const usageMetadata = { promptTokenCount: 3, totalTokenCount: 3 };
    feed(reader, event({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata }), [11]);
    expect([reader.usage, reader.isWhole, reader.isFinal]).toEqual([usage(3, 0), true, true]);
  });

  test('counts of Anthropic add up to the end: an event that states fewer takes nothing back', () => {
    const reader = streamReader('anthropic');
    const start = { input_tokens: 20, cache_read_input_tokens: 6, cache_creation_input_tokens: 4, output_tokens: 1 };
    const delta = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 12 };
    reader.write(event({ type: 'message_start', message: { usage: start } }));
    reader.write(event({ type: 'message_delta', delta: {}, usage: delta }));
    reader.write(event({ type: 'message_stop' }));
    expect([reader.usage, reader.isFinal]).toEqual([usage(30, 12, 6, 4), true]);
  });

  test.each(STREAMS)('no event of %s makes the reader throw, whatever its members are', (api) => {
    const odd = fc.constantFrom(null, 1, 'x', [], {}, { toString: 1, valueOf: 1 }, { usage: { toString: 1 } });
    const names = fc.constantFrom('type', 'usage', 'response', 'message', 'choices', 'usageMetadata', 'prompt_tokens');
    fc.assert(
      fc.property(fc.dictionary(names, odd, { noNullPrototype: true }), (members) => {
        for (const reader of [streamReader(api), answerReader(api)]) {
          feed(reader, event(members), [5]);
          feed(reader, JSON.stringify(members), [5]);
          expect(reader.usage?.inputTokens ?? 0).toBe(0);
        }
        expect(usageStripper().write(event(members))).toBeTypeOf('string');
      }),
    );
  });

  test('the output of a stream is counted while it runs', () => {
    const reader = streamReader('anthropic');
    reader.write('data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"abc');
    expect(reader.seen.characters).toBe(3);
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
    [
      'openai-responses',
      {
        usage: { input_tokens: 9, output_tokens: 2, input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 } },
      },
      usage(9, 2, 4, 3),
    ],
    [
      // xAI, and Google in the shape of OpenAI, count the reasoning in the total only.
      'openai-chat',
      {
        choices: [],
        usage: {
          prompt_tokens: 32,
          completion_tokens: 9,
          total_tokens: 135,
          completion_tokens_details: { reasoning_tokens: 94 },
        },
      },
      usage(32, 103),
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

  test('an answer that a proxy cuts is neither whole nor final', () => {
    const text =
      '[{"usageMetadata":{"promptTokenCount":3}},{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":8}}]';
    for (let length = 1; length < text.length; length++) {
      const reader = answerReader('google');
      feed(reader, text.slice(0, length), [7]);
      expect([length, reader.isWhole, reader.isFinal]).toEqual([length, false, false]);
    }
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

describe('counts that are no numbers', () => {
  test.each<readonly [LlmApi, object]>([
    ['openai-chat', { usage: { prompt_tokens: '9', completion_tokens: '11', total_tokens: '20' } }],
    ['openai-responses', { usage: { input_tokens: 9, output_tokens: '11' } }],
    ['anthropic', { usage: { input_tokens: '9', output_tokens: '11' } }],
    ['google', { usageMetadata: { promptTokenCount: '9', candidatesTokenCount: '11', totalTokenCount: '20' } }],
  ])('a count of %s that is written as a text is read', (api, answer) => {
    const reader = answerReader(api);
    feed(reader, JSON.stringify(answer), [7]);
    expect([reader.usage, reader.isFinal]).toEqual([usage(9, 11), true]);
  });

  test.each(['"many"', '-1', '1.5', '5e12', '[]', '{}', 'true', '""', '"-1"'])(
    'an answer that states %s tokens of output has no usage that is final',
    (tokens) => {
      const json = answerReader('openai-chat');
      feed(json, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":${tokens}}}`, [9]);
      expect([json.isFinal, json.isWhole]).toEqual([false, true]);
      const stream = streamReader('anthropic');
      stream.write(event({ type: 'message_start', message: { usage: { input_tokens: 30, output_tokens: 1 } } }));
      stream.write(`data: {"type":"message_delta","usage":{"output_tokens":${tokens}}}\n\n`);
      stream.write(event({ type: 'message_stop' }));
      stream.end();
      expect([stream.usage, stream.isFinal, stream.isWhole]).toEqual([usage(30, 1), false, true]);
    },
  );

  test('a usage that states no count is none', () => {
    const reader = answerReader('openai-chat');
    feed(reader, '{"choices":[],"usage":{"prompt_tokens":null,"cost":0.1}}', [9]);
    expect([reader.usage, reader.isFinal]).toEqual([null, false]);
  });
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

  test.each(['\n\r\n', '\r\n\n', '\r\n\r', '\n\r', '\r\r\n'])(
    'an event that ends with %j is passed on at once, and the usage is left out, from any division of the text',
    (end) => {
      const withEnd = (text: string): string => text.replace('\n\n', end);
      const text = [content, stated, content].map(withEnd).join('');
      for (let cut = 0; cut <= text.length; cut++) {
        const stripper = usageStripper();
        const passed = stripper.write(text.slice(0, cut)) + stripper.write(text.slice(cut));
        expect([cut, passed]).toEqual([cut, withEnd(content).repeat(2)]);
      }
    },
  );

  test('an event of a megabyte is passed on before it is complete', () => {
    const stripper = usageStripper();
    const long = event({ choices: [{ delta: { content: 'x'.repeat(1_000_000) } }] });
    const first = stripper.write(long.slice(0, 500_000));
    expect(first.length).toBeGreaterThan(400_000);
    expect(first + stripper.write(long.slice(500_000)) + stripper.end()).toBe(long);
  });
});
