import { inspect } from 'node:util';
import { expect, test, vi } from 'vitest';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch, type LimitFetchOptions } from '../../../src/integrations/llm/index.js';
import { LimiterMetrics } from '../../../src/integrations/telemetry/limiter-metrics.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { outage } from '../../../src/testing/outage.js';
import { type ProviderPlan, startProvider } from '../../../src/testing/provider/index.js';
import { type Api, APIS, callOf, ENTITY, KEY, LIMITS, MODEL } from '../../support/llm/world.js';

/** Where the clients put a key: in the headers, and in the query of Google. */
function withKey(api: Api, url: string, stream: boolean): [string, RequestInit] {
  const [address, init] = callOf(api, url, { stream });
  const headers = { ...init.headers, authorization: `Bearer ${KEY}`, 'x-api-key': KEY, 'x-goog-api-key': KEY };
  const query = `${address.includes('?') ? '&' : '?'}key=${KEY}`;
  return [`${address}${query}`, { ...init, headers }];
}

test('the key of a provider is in no log, warning, error, event, metric, answer or record, however its calls end', async () => {
  const shown: string[] = [];
  const show = (...values: readonly unknown[]): void =>
    void shown.push(...values.map((value) => inspect(value, { depth: 12, showHidden: true })));
  const write = (chunk: unknown): boolean => shown.push(String(chunk)) > 0;
  const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write').mockImplementation(write));
  const warned: string[] = [];
  const onWarning = ({ message }: Error): void => void warned.push(message);
  process.on('warning', onWarning);

  let plan: ProviderPlan = {};
  await using provider = await startProvider({ plan: () => plan });
  const down = await startProvider();
  await down.stop();
  const store = outage(memory());
  const metrics = new LimiterMetrics();
  await using limiter = await RateLimiter.open(store.backend, {
    limits: [...LIMITS, Limit.perDay('budget', 1_000_000)],
    onError: show,
    onEvent: (event) => {
      metrics.onEvent(event);
      show(event);
    },
  });
  const options = { limiter, entityId: ENTITY, waitMs: 0, onProviderThrottle: show } satisfies LimitFetchOptions;
  const limited = limitFetch(fetch, options);
  const poor = limitFetch(fetch, { ...options, measures: { budget: 'microdollars' }, prices: {} });
  const call = async (api: Api, stream = false, send: typeof fetch = limited, { url } = provider): Promise<void> => {
    try {
      const response = await send(...withKey(api, url, stream));
      show([...response.headers], await response.text());
    } catch (error) {
      show(error);
    }
  };
  try {
    for (const api of APIS) {
      for (const next of [{}, { status: 401 }, { status: 500 }, { breakAfter: 3 }, { malformed: true }]) {
        plan = next;
        await call(api, false);
        await call(api, true);
      }
      plan = { refusal: { format: api === 'google' ? 'google' : 'openai', waitMs: 60_000 } };
      await call(api);
      await call(api);
      await limiter.resume({ entityId: ENTITY, resource: MODEL });
      plan = {};
      await call(api, false, poor);
      await call(api, false, limited, down);
      const response = await limited(...withKey(api, provider.url, true));
      store.start();
      await response.text();
      await limited.settled();
      await call(api);
      store.end();
    }
    await vi.waitFor(() => expect(warned.join()).toContain('settling a call of a model'));
  } finally {
    process.off('warning', onWarning);
    for (const spy of spies) spy.mockRestore();
  }
  const lists = [
    limiter.audit.list({ entityId: ENTITY }),
    limiter.leases.list(),
    limiter.buckets.list({ entityId: ENTITY }),
  ];
  show(...(await Promise.all<unknown>(lists)));
  const output = [...shown, ...warned, metrics.render()].join('\n');

  expect(output).not.toContain(KEY);
  // Every kind of output is there, or its search would show nothing.
  for (const kind of [
    'provider-throttle',
    'lease-end',
    'bucket.pause',
    'x-headgate-reason',
    'ECONNREFUSED',
    'prices',
  ]) {
    expect(output).toContain(kind);
  }
  expect(output).toContain('headgate_decisions_total');
  expect(output).toContain('backend.unavailable');
});
