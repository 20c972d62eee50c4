import { describe, expect, test } from 'vitest';
import { requestServer } from '../../../tests/support/server/request-server.js';
import { Limit } from '../../core/limit.js';
import { parseSentFile } from '../../cli/limits/parse-sent-file.js';

const FILE = { namespace: 'default', system: { limits: ['rpm:5/min'] } };

const ROUTES = ['POST /v1/limits/plan', 'POST /v1/limits/diff', 'POST /v1/limits/apply'];

describe('a limits file that is sent as text', () => {
  test('a file as JSON text has the same plan as its fields, and apply writes it', async () => {
    const { send, limiter } = await requestServer();
    const text = JSON.stringify(FILE);
    const asFields = await (await send('POST /v1/limits/plan', { body: FILE })).json();
    expect(await (await send('POST /v1/limits/plan', { body: { text } })).json()).toEqual(asFields);
    expect(asFields).toMatchObject({ changes: [{ action: 'create', after: { limits: ['rpm:5/min'] } }] });
    expect((await send('POST /v1/limits/apply', { body: { text } })).status).toBe(200);
    expect((await limiter.config.get('system'))?.limits.map(String)).toEqual(['rpm:5/min']);
  });

  test('a diff says whether the store differs from the file, also by a change made by hand, and writes nothing', async () => {
    const { send, limiter } = await requestServer();
    const diff = async (): Promise<unknown> => (await send('POST /v1/limits/diff', { body: FILE })).json();
    const asPlan = (await (await send('POST /v1/limits/plan', { body: FILE })).json()) as object;
    expect(await diff()).toEqual({ differs: true, ...asPlan });
    expect(await limiter.config.get('system')).toBeNull();
    await send('POST /v1/limits/apply', { body: FILE });
    expect(await diff()).toMatchObject({ differs: false, changes: [], drift: [] });
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 7)] });
    expect(await diff()).toMatchObject({ differs: true, drift: [{ live: { limits: ['rpm:7/min'] } }] });
    expect((await limiter.config.get('system'))?.limits.map(String)).toEqual(['rpm:7/min']);
  });

  test.each([
    ['text beside fields of a file', { text: '{}', namespace: 'default' }, /either text or the fields/],
    ['YAML at a server without a parser for it', { text: 'namespace: default' }, /no parser for YAML/],
    ['JSON that is nested too deeply', { text: '['.repeat(300) + ']'.repeat(300) }, /at most 100 levels/],
    ['text that is no object', { text: '7' }, /expected an object|to be an object/i],
    ['neither text nor a namespace', { system: { limits: ['rpm:5/min'] } }, /namespace/],
  ])('the server refuses %s, and writes nothing', async (_what, body, detail) => {
    const { send, limiter } = await requestServer();
    for (const route of ROUTES) {
      const response = await send(route, { body });
      expect([response.status, ((await response.json()) as { detail: string }).detail]).toEqual([
        400,
        expect.stringMatching(detail),
      ]);
    }
    expect(await limiter.config.get('system')).toBeNull();
  });

  test.each([
    ['brackets', '['.repeat(3_000) + ']'.repeat(3_000)],
    ['dashes', `${'- '.repeat(3_000)}x`],
    ['braces', `${'{a: '.repeat(3_000)}1${'}'.repeat(3_000)}`],
    ['keys', `${'? '.repeat(3_000)}x`],
    ['anchors within anchors', Array.from({ length: 200 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}]`).join('\n')],
  ])('the parser of headgate serve refuses nesting of thousands of levels by %s', async (_what, nested) => {
    const { send, limiter } = await requestServer({ parseLimitsFile: parseSentFile });
    const texts = [nested, `namespace: default\na0: &a0 []\n${nested.startsWith('a1') ? nested : `x: ${nested}`}`];
    for (const route of ROUTES) {
      for (const text of texts) {
        const response = await send(route, { body: { text } });
        const { detail } = (await response.json()) as { readonly detail: string };
        expect([response.status, detail]).toEqual([400, expect.stringMatching(/^limits file:\d/)]);
        expect(detail).not.toMatch(/call stack|regular expression/i);
      }
    }
    expect(await limiter.config.get('system')).toBeNull();
  });
});
