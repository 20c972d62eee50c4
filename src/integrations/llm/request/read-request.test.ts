import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readEndpoint } from './endpoints.js';
import { asksForUsage, withUsage } from './include-usage.js';
import { spanOfMember } from './member-span.js';
import { parseBody, readRequest } from './read-request.js';

function read(path: string, body: object) {
  const endpoint = readEndpoint(path);
  return endpoint === null ? null : readRequest(endpoint, parseBody(JSON.stringify(body)));
}

describe('the requests of the APIs', () => {
  const messages = [{ role: 'user', content: 'hello' }];

  test('a chat completion states its model, its stream, its user and the maximum output of all its choices', () => {
    const body = {
      model: 'gpt-4o',
      messages,
      stream: true,
      user: 'u1',
      max_completion_tokens: 50,
      max_tokens: 9,
      n: 3,
    };
    expect(read('https://api.openai.com/v1/chat/completions', body)).toMatchObject({
      call: { api: 'openai-chat', model: 'gpt-4o', stream: true, user: 'u1' },
      prompt: { characters: 'rolecontentuserhello'.length, texts: ['user', 'hello'] },
      maxOutputTokens: 150,
    });
  });

  test('an Azure deployment is the model, whatever the body says', () => {
    const path = 'https://x.openai.azure.com/openai/deployments/my%20gpt/chat/completions';
    expect(read(path, { model: 'ignored', messages })?.call).toMatchObject({ api: 'openai-chat', model: 'my gpt' });
  });

  test('a response states its input, its instructions and its maximum output', () => {
    const body = { model: 'o3', input: 'hi', instructions: 'be brief', max_output_tokens: 7, safety_identifier: 's' };
    expect(read('/v1/responses', body)).toMatchObject({
      call: { api: 'openai-responses', model: 'o3', stream: false, user: 's' },
      prompt: { characters: 10 },
      maxOutputTokens: 7,
    });
  });

  test('embeddings have no output, and token ids count as tokens', () => {
    expect(read('/v1/embeddings', { model: 'e', input: ['abcd', 'ef'] })).toMatchObject({
      prompt: { characters: 6, tokens: 0 },
      maxOutputTokens: 0,
    });
    expect(read('/v1/embeddings', { model: 'e', input: [[1, 2, 3], [4]] })?.prompt).toMatchObject({
      characters: 0,
      tokens: 4,
    });
  });

  test.each([
    ['embedContent', { content: { parts: [{ text: 'hello' }] } }, 'partstexthello'],
    ['batchEmbedContents', { requests: [{ content: { parts: [{ text: 'hi' }] } }] }, 'contentpartstexthi'],
  ])('embeddings of Google by %s have no output', (method, body, text) => {
    expect(read(`https://g.test/v1beta/models/gemini-embedding-001:${method}`, body)).toMatchObject({
      call: { api: 'google-embeddings', model: 'gemini-embedding-001', stream: false },
      prompt: { characters: text.length },
      maxOutputTokens: 0,
    });
  });

  test('the maximum output of a completion is for each of its prompts, and of the choices that the provider tries', () => {
    const body = { model: 'm', prompt: ['one', 'two'], max_tokens: 10, n: 2, best_of: 5 };
    expect(read('/v1/completions', body)?.maxOutputTokens).toBe(100);
    expect(read('/v1/completions', { ...body, prompt: [1, 2, 3] })?.maxOutputTokens).toBe(50);
  });

  test('a message of Anthropic states its system prompt, its user and its maximum output', () => {
    const body = { model: 'claude', system: 'be brief', messages, max_tokens: 20, metadata: { user_id: 'u2' } };
    expect(read('https://api.anthropic.com/v1/messages', body)).toMatchObject({
      call: { api: 'anthropic', model: 'claude', user: 'u2' },
      maxOutputTokens: 20,
    });
  });

  test.each([
    ['rawPredict', false],
    ['streamRawPredict', true],
  ])('%s of Vertex AI is a message of Anthropic, whose model is in the address', (method, stream) => {
    const models =
      'https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models';
    const body = { anthropic_version: 'vertex-2023-10-16', messages, max_tokens: 20, stream };
    expect(read(`${models}/claude-sonnet-4@20250514:${method}`, body)).toMatchObject({
      call: { api: 'anthropic', model: 'claude-sonnet-4@20250514', stream },
      maxOutputTokens: 20,
    });
  });

  test('Google names the model and the stream in the address, and the maximum output of each candidate', () => {
    const path = 'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent';
    const body = {
      contents: [{ parts: [{ text: 'hi' }] }],
      generationConfig: { maxOutputTokens: 5, candidateCount: 2 },
    };
    expect(read(path, body)).toMatchObject({
      call: { api: 'google', model: 'gemini-2.5-pro', stream: true },
      prompt: { characters: 'partstexthi'.length },
      maxOutputTokens: 10,
    });
  });

  test.each([
    '/v1/models',
    '/v1/messages/count_tokens',
    '/v1/responses/resp_1',
    '/v1/chat/completions/x',
    '/v1/files',
    '/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict',
    '/v1/projects/p/locations/l/publishers/other/models/m:rawPredict',
  ])('%s is no call of a model', (path) => expect(readEndpoint(path)).toBe(null));

  test('no other way to write an address of a call evades the limits', () => {
    const paths = [
      '/v1/chat/completions',
      '/openai/deployments/gpt/chat/completions',
      '/v1/completions',
      '/v1/responses',
      '/v1/embeddings',
      '/v1/messages',
      '/v1beta/models/gemini:generateContent',
      '/v1beta/models/gemini:streamGenerateContent',
      '/v1beta/models/gemini:embedContent',
      '/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict',
    ];
    const encode = (character: string): string => `%${character.charCodeAt(0).toString(16)}`;
    const changes: Readonly<Record<string, (character: string) => string>> = {
      none: (character) => character,
      'upper case': (character) => character.toUpperCase(),
      encoded: encode,
      'twice a slash': (character) => (character === '/' ? '//' : character),
      'a dot segment': (character) => (character === '/' ? '/./' : character),
      'a backslash': (character) => (character === '/' ? '\\' : character),
    };
    const change = fc.constantFrom(...Object.keys(changes));
    const end = fc.constantFrom('', '/', '//', '/?key=1', '?alt=sse', '#x', '/.', '?a=/v1/files');
    const origin = fc.constantFrom('https://api.test', 'HTTPS://api.test:8443/proxy');
    fc.assert(
      fc.property(
        fc.constantFrom(...paths),
        fc.array(change, { minLength: 1 }),
        end,
        origin,
        (path, made, after, before) => {
          const written = Array.from(path, (character, at) => changes[made[at % made.length]!]!(character)).join('');
          // The first slash separates the path from the origin.
          const found = readEndpoint(`${before}/${written}${after}`);
          expect({ ...found, model: found?.model?.toLowerCase() ?? null }).toEqual(readEndpoint(path));
        },
      ),
    );
  });

  test('an address that is malformed is read as far as it can be', () => {
    expect(readEndpoint('/v1/%zz/chat/completions')?.api).toBe('openai-chat');
    expect(readEndpoint('http://[/v1/chat/completions')?.api).toBe('openai-chat');
  });

  test('images, audio, files and encrypted parts are not counted', () => {
    const binary = 'A'.repeat(10_000);
    const parts = [
      { type: 'image_url', image_url: { url: `data:image/png;base64,${binary}` } },
      { type: 'input_audio', input_audio: { data: binary } },
      { type: 'image', source: { type: 'base64', data: binary } },
      { inlineData: { data: binary } },
      { type: 'thinking', signature: binary },
      `data:text/plain;base64,${binary}`,
    ];
    expect(read('/v1/messages', { model: 'm', messages: parts })?.prompt.characters).toBeLessThan(100);
  });

  test.each(['', 'null', '[]', '"x"', '{', '{"messages":7,"max_tokens":-1,"model":3}'])(
    'the body %j has a size of zero',
    (text) => {
      const sized = readRequest({ api: 'openai-chat', model: null, stream: null }, parseBody(text));
      expect(sized).toEqual({
        call: { api: 'openai-chat', model: 'unknown', stream: false, user: null },
        prompt: { characters: 0, tokens: 0, texts: [] },
        maxInputTokens: expect.any(Number),
        maxOutputTokens: null,
      });
    },
  );

  test('a request that is nested very deeply is read without exhausting the stack', () => {
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    expect(
      readRequest({ api: 'openai-chat', model: null, stream: null }, parseBody(`{"messages":${deep}}`)),
    ).toBeDefined();
  });
});

describe('the wish for the usage of a stream', () => {
  test.each(['{"stream":true}', ' {\n}', '{"stream_options":{"other":1},"model":"m"}', '{"stream_options":null}'])(
    'the body %j asks for the usage, and keeps its other fields',
    (text) => {
      const body = parseBody(text);
      const changed = parseBody(withUsage(text, body!));
      expect(asksForUsage(body!)).toBe(false);
      expect(asksForUsage(changed!)).toBe(true);
      expect(changed).toMatchObject({ ...body, stream_options: {} });
    },
  );

  test.each([
    ['{"seed":12345678901234567890,"stream_options":{"a":1},"n":1}', '{"a":1,"include_usage":true}'],
    ['{ "seed": 12345678901234567890, "stream_options" : null }', '{"include_usage":true}'],
    [
      '{"stream_options":{"include_usage":false},"x":{"stream_options":{}},"y":9007199254740993}',
      '{"include_usage":true}',
    ],
    [
      '{"x":"\\\\\\",\\"stream_options\\":{},","stream_options":{"a":"}"},"z":[1,{"b":2}]}',
      '{"a":"}","include_usage":true}',
    ],
  ])('the text of the body %s stays as it is, but for the option', (text, options) => {
    const changed = withUsage(text, parseBody(text)!);
    const at = changed.indexOf(options);
    const before = changed.slice(0, at);
    const after = changed.slice(at + options.length);
    expect(at).toBeGreaterThan(0);
    expect(text.startsWith(before) && text.endsWith(after)).toBe(true);
    expect(parseBody(changed)).toEqual({ ...parseBody(text), stream_options: JSON.parse(options) });
  });

  test('the value of a member is found in any JSON text', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), fc.nat(2), (others, value, space) => {
        const text = JSON.stringify({ ...others, wanted: value, 'also "x\\': others }, null, space);
        const span = spanOfMember(text, 'wanted');
        expect(JSON.parse(text.slice(span?.from, span?.to))).toEqual(JSON.parse(JSON.stringify(value)));
        expect(spanOfMember(JSON.stringify({ a: { wanted: value } }), 'wanted')).toBe(null);
      }),
    );
  });
});
