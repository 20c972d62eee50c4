import { inspect } from 'node:util';
import { expect, test, vi } from 'vitest';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitModel } from '../../../src/integrations/llm/index.js';
import { LimiterMetrics } from '../../../src/integrations/telemetry/limiter-metrics.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { outage } from '../../../src/testing/outage.js';
import { type ProviderPlan, startProvider } from '../../../src/testing/provider/index.js';
import { LIMITED_MODELS } from '../../support/llm/limited-models.js';
import { ENTITY, KEY, LIMITS, MODEL } from '../../support/llm/world.js';

test.each(Object.entries(LIMITED_MODELS))(
  'the key of a provider is in no log, warning, error, event, metric or record of limitModel with %s, however its calls end',
  async (_, ask) => {
    const shown: string[] = [];
    const show = (...values: readonly unknown[]): void =>
      void shown.push(...values.map((value) => inspect(value, { depth: 12, showHidden: true })));
    const write = (chunk: unknown): boolean => shown.push(String(chunk)) > 0;
    const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write').mockImplementation(write));
    const onWarning = ({ message }: Error): void => show(message);
    process.on('warning', onWarning);
    let plan: ProviderPlan = {};
    await using provider = await startProvider({ plan: () => plan });
    const store = outage(memory());
    const metrics = new LimiterMetrics();
    const clock = fakeClock();
    await using limiter = await RateLimiter.open(store.backend, {
      clock,
      limits: [...LIMITS, Limit.perDay('budget', 1_000_000)],
      onError: show,
      onEvent: (event) => {
        metrics.onEvent(event);
        show(event);
      },
    });
    const options = { limiter, entityId: ENTITY, waitMs: 0, onProviderThrottle: show, clock };
    const limited = limitModel(options);
    const poor = limitModel({ ...options, measures: { budget: 'microdollars' }, prices: {} });
    const call = async (limits = limited, url = provider.url): Promise<void> => {
      for (const stream of [false, true]) await ask(url, limits, { stream }).catch(show);
    };
    try {
      for (const next of [{}, { status: 401 }, { status: 500 }, { breakAfter: 3 }, { malformed: true }]) {
        plan = next;
        await call();
      }
      plan = { refusal: { format: 'openai', waitMs: 60_000 } };
      await call();
      await limiter.resume({ entityId: ENTITY, resource: MODEL });
      plan = {};
      await call(poor);
      await call(limited, 'http://127.0.0.1:1');
      // The caller has left a stream of ai 7 at its malformed event, and ai 7 does not cancel it.
      await clock.advance(5_000);
      await limited.settled();
      store.start();
      await call();
      store.end();
    } finally {
      process.off('warning', onWarning);
      for (const spy of spies) spy.mockRestore();
    }
    show(
      ...(await Promise.all<unknown>([
        limiter.audit.list({ entityId: ENTITY }),
        limiter.buckets.list({ entityId: ENTITY }),
      ])),
    );
    const output = [...shown, metrics.render()].join('\n');

    expect(output).not.toContain(KEY);
    // Every kind of output is there, or its search would show nothing.
    const kinds = ['provider-throttle', 'lease-end', 'bucket.pause', 'limit.exceeded', 'prices', 'backend.unavailable'];
    for (const kind of [...kinds, 'headgate_decisions_total']) expect(output).toContain(kind);
  },
);
