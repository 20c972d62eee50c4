import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a script against the sources in a new process, and returns its output. Fails if the process does not exit. */
async function run(script: string): Promise<string> {
  const folder = join(ROOT, '.tmp');
  mkdirSync(folder, { recursive: true });
  const outfile = join(folder, `process-exit-${process.pid}.mjs`);
  await build({
    stdin: {
      contents: `import { RateLimiter, Limit } from './src/index.ts';\n${script}`,
      resolveDir: ROOT,
      loader: 'ts',
    },
    bundle: true,
    outfile,
    format: 'esm',
    platform: 'node',
    target: 'node20',
  });
  return execFileSync(process.execPath, [outfile], { encoding: 'utf8', timeout: 20_000 });
}

const OPEN = `const limiter = await RateLimiter.open({ limits: [Limit.perSecond('rps', 10), Limit.concurrent('slots', 1)] });
const ask = { entityId: 'a', resource: 'r', consume: { rps: 1, slots: 1 } };`;

test('an open limiter with an open lease does not keep the process alive', async () => {
  expect(await run(`${OPEN} await limiter.acquire(ask); console.log('end');`)).toBe('end\n');
});

test('a lease with a listener on its signal does not keep the process alive', async () => {
  const script = `${OPEN} (await limiter.acquire(ask)).signal.addEventListener('abort', () => {}); console.log('end');`;
  expect(await run(script)).toBe('end\n');
});

test('a run that never ends does not keep the process alive by extending its lease', async () => {
  expect(await run(`${OPEN} limiter.run(ask, () => new Promise(() => {})); console.log('end');`)).toBe('end\n');
});

test('a closed limiter does not keep the process alive by its waits for a rate or a slot', async () => {
  const script = `${OPEN} await limiter.acquire({ ...ask, consume: { rps: 10, slots: 1 } });
    const wait = { timeoutMs: 60_000 };
    const waits = [{ rps: 10 }, { slots: 1 }].map((consume) => limiter.acquire({ ...ask, consume, wait }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const ended = Promise.allSettled(waits);
    await limiter.close();
    console.log((await ended).map(({ reason }) => reason.kind).join(' '));`;
  expect(await run(script)).toBe('closed closed\n');
});

test('a wait that the program awaits keeps the process alive until it is served', async () => {
  const script = `${OPEN} await limiter.acquire({ ...ask, consume: { rps: 10 } });
    await limiter.acquire({ ...ask, consume: { rps: 1 }, wait: { timeoutMs: 5000 } });
    console.log('served');`;
  expect(await run(script)).toBe('served\n');
});

test('a pending revocation does not keep the process alive', async () => {
  const script = `const { Revocations } = await import('./src/backends/dynamodb/acquire/revocations.ts');
    new Revocations(() => 1).add(() => Promise.reject(new Error('out')), () => {});
    console.log('end');`;
  expect(await run(script)).toBe('end\n');
});
