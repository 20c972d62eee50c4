import { buildSync } from 'esbuild';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { connected } from '../../tests/support/server/connected-client.js';

describe('the bundle of the client', () => {
  const build = (format: object): Uint8Array => {
    const entryPoints = [fileURLToPath(new URL('index.ts', import.meta.url))];
    const common = { entryPoints, bundle: true, minify: true, platform: 'neutral', write: false } as const;
    return buildSync({ ...common, ...format }).outputFiles[0]?.contents ?? new Uint8Array();
  };
  const code = new TextDecoder().decode(build({ format: 'iife', globalName: 'headgate' }));

  test('runs where there is no module of Node, only the globals of the web', async () => {
    const { fetching, credential } = await connected();
    const timers = { setTimeout, clearTimeout };
    const globals = { ...timers, URLSearchParams, AbortSignal, AbortController, crypto, console };
    // The default `fetch` is that of the runtime.
    const context = createContext({ ...globals, fetch: fetching, secret: credential.secret });
    const answers: unknown = await runInContext(
      `${code};
      (async () => {
        const client = new headgate.HeadgateClient('http://headgate.test', { token: secret });
        const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 4, slots: 1 } };
        const settled = await client.run(ask, async (lease) => {
          await lease.settle({ rpm: 6 });
          await lease.adjust({ rpm: -1 });
          await lease.extend();
          return lease.consumed.rpm;
        });
        const { available } = (await client.status({ entityId: 'user-1', resource: 'gpt-4' }))[0];
        const denial = await client.tryAcquire({ ...ask, consume: { rpm: 9 } });
        const error = await client.acquire({ ...ask, consume: { rpm: 9 } }).catch((thrown) => thrown);
        const invalid = await client.peek({ ...ask, consume: { rpn: 1 } }).catch((thrown) => thrown);
        const types = [typeof process, typeof require, typeof Buffer];
        return JSON.stringify([settled, available, denial.reason, error.code, invalid.code, ...types]);
      })()`,
      context,
    );
    const expected = [5, 5, 'exhausted', 'limit.exceeded', 'input.invalid'];
    expect(JSON.parse(answers as string)).toEqual([...expected, 'undefined', 'undefined', 'undefined']);
  });

  test('names no module of Node', () => {
    expect(code).not.toMatch(/\b(?:node:\w+|require\(|process\.|Buffer\b|__dirname)/);
  });

  test('has less than 7 KB compressed, as the module that npm run build makes of it, minified', () => {
    const module = build({ format: 'esm', target: 'es2022' });
    expect(gzipSync(module, { level: 9 }).byteLength).toBeLessThan(7_000);
  });
});
