import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type Engine, findEngine, startEngine } from 'headgate/testing/dynamodb';
import { RateLimiter } from 'headgate';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openTable } from '../../examples/operate/dynamodb.js';
import { reclaim } from '../../examples/operate/reconciler.js';
import { countUsage } from '../../examples/operate/worker.js';

const found = findEngine();
const NOTE = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

describe.skipIf(found.status !== 'available')(`the examples on a table${NOTE}`, () => {
  let engine: Engine;

  beforeAll(async () => {
    engine = await startEngine();
    vi.stubEnv('AWS_ACCESS_KEY_ID', engine.credentials.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', engine.credentials.secretAccessKey);
    vi.stubEnv('AWS_REGION', 'eu-west-1');
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await engine.stop();
  });

  test('the example of a table opens it by its address and by a client', async () => {
    const client = new DynamoDBClient({ endpoint: engine.endpoint, region: 'eu-west-1' });
    const limiters = await openTable(client, engine.endpoint);
    expect(await Promise.all(limiters.map(async (limiter) => (await limiter.ping()).ok))).toEqual([true, true]);
    for (const limiter of limiters) await limiter.close();
    client.destroy();
  });

  test('the example of the first table creates the table that its page opens', async () => {
    vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', engine.endpoint);
    await import('../../examples/operate/first-table.js');
    await using limiter = await RateLimiter.open('dynamodb://headgate?region=eu-west-1');
    expect(await limiter.ping()).toMatchObject({ ok: true });
  });

  test('the examples of the reconciler and of the worker end when their signal aborts', async () => {
    const on = { table: 'limits', endpoint: engine.endpoint };
    const log = vi.fn();
    expect(await reclaim(on, AbortSignal.abort(), log)).toMatchObject({ reclaimed: 0, complete: true });
    await countUsage(on, AbortSignal.abort(), log);
    expect(log).not.toHaveBeenCalledWith(expect.anything(), expect.any(Error));
  });
});

test('the examples of telemetry count a denial', async () => {
  vi.stubEnv('HEADGATE_URL', '');
  const ask = { entityId: 'ada', resource: 'chat', consume: { rpm: 61 } };
  const { limiter } = await import('../../examples/operate/telemetry.js');
  expect((await limiter.tryAcquire(ask)).granted).toBe(false);
  await limiter.close();

  const prometheus = await import('../../examples/operate/prometheus.js');
  await prometheus.limiter.tryAcquire(ask);
  const server = prometheus.app.listen(0, '127.0.0.1');
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const { port } = server.address() as { readonly port: number };
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text).toContain('headgate_decisions_total{outcome="denied"');
  server.close();
  await prometheus.limiter.close();

  const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const cloudwatch = await import('../../examples/operate/cloudwatch.js');
  expect(await cloudwatch.handler({ user: 'ada' })).toEqual({ statusCode: 200 });
  const lines = written.mock.calls.map(([line]) => String(line)).join('');
  written.mockRestore();
  expect(lines).toContain('headgate.decisions');
  await cloudwatch.limiter.close();
  vi.unstubAllEnvs();
});
