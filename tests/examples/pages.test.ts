import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Limit, type ManifestData, memory, RateLimiter } from 'headgate';
import { createServer } from 'headgate/server';
import { fakeClock } from 'headgate/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { chargeAndCredit } from '../../examples/guide/charge.js';
import { openWithListener } from '../../examples/guide/events.js';
import { applyFromCode } from '../../examples/guide/limits-file.js';
import { limitUpstream } from '../../examples/guide/llm-upstream.js';
import { pauseAndResume } from '../../examples/guide/pause.js';
import { askServer } from '../../examples/guide/serve-client.js';
import { startService } from '../../examples/guide/shutdown.js';
import { type Jobs, sendInRun, travel } from '../../examples/guide/travelling-leases.js';
import { bill } from '../../examples/operate/billing.js';

beforeEach(() => {
  vi.stubEnv('HEADGATE_URL', '');
  vi.stubEnv('HEADGATE_LEASE_SECRET', 'a-secret-of-16-or-more');
});
afterEach(() => vi.unstubAllEnvs());

function queueOfOne(): Jobs & { readonly sent: unknown[] } {
  const sent: Parameters<Jobs['send']>[0][] = [];
  return { sent, send: async (job) => void sent.push(job), receive: async () => sent.shift()! };
}

test.each([
  ['the README', '../../examples/readme.js'],
  ['the first page', '../../examples/guide/getting-started.js'],
])('the example of %s prints the answer', async (_, example) => {
  const log = vi.spyOn(console, 'log').mockReturnValue();
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-example-'));
  process.chdir(folder);
  try {
    await import(example);
    expect(log.mock.calls).toEqual([['Blue light scatters most.']]);
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
    log.mockRestore();
  }
});

test('the example of charges goes into debt and gives a part back', async () => {
  await using limiter = new RateLimiter('memory:', { clock: fakeClock(), limits: [Limit.perMinute('tpm', 10_000)] });
  expect(await chargeAndCredit(limiter)).toBe(-1_000);
});

test('the example of events reports a denial', async () => {
  const warn = vi.fn();
  const limiter = await openWithListener({ warn }, vi.fn());
  await limiter.tryAcquire({ entityId: 'ada', resource: 'gpt-4', consume: { rpm: 61 } });
  expect(warn).toHaveBeenCalledExactlyOnceWith('ada', [expect.objectContaining({ requested: 61 })]);
  await limiter.close();
});

test('the example of options of limits keeps a reserve and cuts an ask', async () => {
  const { batch, cutToWhatThereIs, limiter, web } = await import('../../examples/guide/limit-options.js');
  expect([web.granted, batch.granted]).toEqual([true, true]);
  expect(await cutToWhatThereIs()).toBeGreaterThan(98_000);
  const last = { entityId: 'acme', resource: 'gpt-4', consume: { tpm: 80_000 } };
  expect(await limiter.tryAcquire({ ...last, priority: 'batch' })).toMatchObject({ granted: false });
  expect(await limiter.tryAcquire(last)).toMatchObject({ granted: true });
  await limiter.close();
});

test('the example of a limits file in code plans, applies and exports', async () => {
  await using limiter = new RateLimiter('memory:');
  const manifest: ManifestData = { namespace: 'default', resources: { 'gpt-4': { limits: ['rpm:60/min'] } } };
  const log = vi.spyOn(console, 'log').mockReturnValue();
  expect(await applyFromCode(limiter, manifest)).toEqual(['1 planned', 'gpt-4']);
  expect(log.mock.calls).toEqual([['1 of 1: create']]);
  log.mockRestore();
  await expect(applyFromCode(limiter, { namespace: 'default' })).rejects.toThrow('This would delete something');
});

test('the example of an upstream key sends other requests without limits', async () => {
  await using limiter = new RateLimiter('memory:');
  const limited = await limitUpstream(limiter);
  expect((await limited('data:text/plain,hello')).status).toBe(200);
  expect(await limiter.entities.get('ada')).toMatchObject({ parentId: 'openai-key-1', cascade: true });
});

test('the example of pauses refuses the key until it is resumed', async () => {
  await using limiter = new RateLimiter('memory:');
  expect(await pauseAndResume(limiter)).toBe(true);
  expect((await limiter.entities.get('proj-2'))?.paused).toMatchObject({ reason: 'unpaid' });
});

test('the example of the client asks a server', async () => {
  await using limiter = new RateLimiter('memory:');
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 1)] });
  const server = createServer(limiter);
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (...request) => server.fetch(new Request(...request)));
  const refused = vi.fn();
  expect([
    await askServer('http://localhost:8700', refused),
    await askServer('http://localhost:8700', refused),
  ]).toEqual([true, false]);
  expect(refused).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
});

test('the example of the dashboard serves its page', async () => {
  const { answer, limiter, server } = await import('../../examples/guide/dashboard.js');
  expect((await answer(new Request('http://localhost/dashboard/'))).status).toBe(200);
  server.close();
  await limiter.close();
});

test('the example of a shutdown ends waits, then calls, then the limiter', async () => {
  const order: string[] = [];
  const shutDown = await startService({ stop: async () => void order.push('stopped') });
  await shutDown();
  expect(order).toEqual(['stopped']);
});

test('the example of travelling leases commits in the worker', async () => {
  expect(await travel(queueOfOne())).toBe('committed');
});

test('the example of a lease that is sent inside of run leaves the lease open', async () => {
  await using limiter = new RateLimiter('memory:', {
    limits: [Limit.perMinute('tpm', 10_000), Limit.concurrent('jobs', 4)],
  });
  const queue = queueOfOne();
  await sendInRun(limiter, queue);
  expect(queue.sent).toHaveLength(1);
  expect((await limiter.leases.list()).items).toHaveLength(1);
});

test('the example of a bill sums the usage of a tenant', async () => {
  const store = memory({ namespaces: ['default', 'acme'] });
  await using limiter = new RateLimiter(store, { limits: [Limit.perMinute('tpm', 10_000)] });
  const acme = await limiter.in('acme');
  await acme.charge({ entityId: 'account', resource: 'gpt-4', amounts: { tpm: 700 } });
  expect(await bill(limiter, new Date('2020-01-01'), new Date('2100-01-01'))).toBe(700);
});
