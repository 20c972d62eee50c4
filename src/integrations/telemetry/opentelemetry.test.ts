import { context, type Context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openMeter } from '../../../tests/support/telemetry/readings.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { METRICS } from './metric-table.js';
import { openTelemetry, type OpenTelemetryOptions } from './opentelemetry.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, slots: 1 } };

/** A limiter in memory whose events reach OpenTelemetry. */
async function observed(options: OpenTelemetryOptions) {
  const clock = fakeClock();
  const telemetry = openTelemetry({ now: () => clock.now(), ...options });
  const limiter = await RateLimiter.open('memory:', {
    clock,
    limits: [Limit.perMinute('rpm', 2), Limit.concurrent('slots', 5)],
    onEvent: telemetry.onEvent,
  });
  return { limiter, clock, telemetry };
}

function openTracer() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  return { tracer: provider.getTracer('headgate'), spans: () => exporter.getFinishedSpans() };
}

const milliseconds = ([seconds, nanoseconds]: readonly [number, number]): number => seconds * 1e3 + nanoseconds / 1e6;

describe('the metrics', () => {
  test('a meter gets every metric of the table, in its unit', async () => {
    const meter = openMeter();
    const { limiter } = await observed({ meter: meter.meter });
    limiter.noteThrottle({ entityId: 'user-1', resource: 'gpt-4', dimension: 'tokens', retryAfterMs: null });
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 2), Limit.concurrent('slots', 5)] });
    await (await limiter.acquire({ ...ASK, wait: { timeoutMs: 1_000 } })).commit();
    const described = (await meter.collect()).map(({ descriptor: { name, unit } }) => ({ name, unit }));
    const expected = Object.values(METRICS).map((metric) => ({ name: metric.name, unit: 'unit' in metric ? 's' : '' }));
    expect(described).toEqual(expect.arrayContaining(expected));
    expect(described).toHaveLength(expected.length);
    await meter.close();
  });

  test('no metric names an entity or a lease', async () => {
    const meter = openMeter();
    const { limiter } = await observed({ meter: meter.meter });
    const lease = await limiter.acquire({ ...ASK, entityId: 'someone@example.com' });
    await limiter.pause({ entityId: 'someone@example.com', forMs: 1_000, reason: 'a secret reason' });
    await limiter.tryAcquire({ ...ASK, entityId: 'someone@example.com' });
    const text = JSON.stringify(await meter.collect());
    for (const secret of ['someone', lease.id, 'a secret reason']) expect(text).not.toContain(secret);
    await meter.close();
  });

  test('the slots of a lease that expired unnoticed no longer count, and a closed listener observes nothing', async () => {
    const meter = openMeter();
    const { limiter, clock, telemetry } = await observed({ meter: meter.meter });
    await limiter.acquire({ ...ASK, leaseTtlMs: 5_000 });
    const inUse = 'headgate.slots.in_use limit=slots resource=gpt-4';
    expect(await meter.read()).toMatchObject({ [inUse]: 1 });
    await clock.advance(5_000);
    expect(await meter.read()).not.toHaveProperty([inUse]);
    telemetry.close();
    await limiter.acquire(ASK);
    expect(await meter.read()).not.toHaveProperty([inUse]);
    await meter.close();
  });
});

describe('the spans', () => {
  const active = new AsyncLocalStorage<Context>();

  beforeAll(() => {
    context.setGlobalContextManager({
      active: () => active.getStore() ?? ROOT_CONTEXT,
      with: (of, work, self, ...args) => active.run(of, () => work.call(self as never, ...args)),
      bind: (_, target) => target,
      enable: () => ({}) as never,
      disable: () => ({}) as never,
    });
  });
  afterAll(() => context.disable());

  test('a denial is a span with the entity, the limits that refused and the wait', async () => {
    const { tracer, spans } = openTracer();
    const { limiter } = await observed({ tracer });
    await limiter.tryAcquire({ ...ASK, consume: { rpm: 2 } });
    await limiter.tryAcquire(ASK);
    expect(spans().map(({ name }) => name)).toEqual(['headgate.acquire', 'headgate.acquire']);
    expect(spans()[1]?.attributes).toEqual({
      'headgate.namespace': 'default',
      'headgate.entity_id': 'user-1',
      'headgate.resource': 'gpt-4',
      'headgate.outcome': 'denied',
      'headgate.decided_by': 'store',
      'headgate.reason': 'exhausted',
      'headgate.retry_after_ms': 30_000,
      'headgate.violated.limits': ['rpm'],
      'headgate.violated.entity_ids': ['user-1'],
    });
  });

  test('the span of a call that waited lasts as long as the call, and the end of its lease is a span with the tokens', async () => {
    const { tracer, spans } = openTracer();
    const { limiter, clock } = await observed({ tracer });
    await limiter.acquire({ ...ASK, consume: { rpm: 2 } });
    const waiting = limiter.acquire({ ...ASK, wait: { timeoutMs: 60_000 } });
    await clock.advance(30_000);
    const lease = await waiting;
    await lease.commit({ rpm: 7 });
    const [, waited, ended] = spans();
    expect(milliseconds(waited!.endTime) - milliseconds(waited!.startTime)).toBe(30_000);
    expect(milliseconds(waited!.endTime)).toBe(clock.now());
    expect(waited?.attributes).toMatchObject({ 'headgate.waited_ms': 30_000, 'headgate.tokens.rpm': 1 });
    expect(ended?.name).toBe('headgate.lease.end');
    expect(ended?.attributes).toMatchObject({
      'headgate.lease_id': lease.id,
      'headgate.lease_end': 'committed',
      'headgate.tokens.rpm': 7,
    });
  });

  test('spans are children of the span that is active in the call, also after a wait', async () => {
    const { tracer, spans } = openTracer();
    const { limiter, clock } = await observed({ tracer });
    await limiter.acquire({ ...ASK, consume: { rpm: 2 } });
    const parent = tracer.startSpan('request');
    const working = context.with(trace.setSpan(context.active(), parent), () =>
      limiter.run({ ...ASK, wait: { timeoutMs: 60_000 } }, () => 'done'),
    );
    await clock.advance(30_000);
    await working;
    const own = spans().slice(1);
    expect(own.map(({ name }) => name)).toEqual(['headgate.acquire', 'headgate.lease.end']);
    for (const { parentSpanContext } of own) expect(parentSpanContext?.spanId).toBe(parent.spanContext().spanId);
  });
});
