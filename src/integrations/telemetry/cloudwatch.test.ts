import { describe, expect, test } from 'vitest';
import { readEmf } from '../../../tests/support/telemetry/readings.js';
import { Limit } from '../../core/limit.js';
import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { CloudWatchMetrics, type CloudWatchOptions } from './cloudwatch.js';
import { buildEmfLines, type EmfSeries } from './emf-line.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

/** A limiter in memory whose events are written as lines. */
async function writing(options: CloudWatchOptions = {}) {
  const clock = fakeClock();
  const lines: string[] = [];
  const metrics = new CloudWatchMetrics({ write: (line) => lines.push(line), now: () => clock.now(), ...options });
  const limits = [Limit.perMinute('rpm', 1_000), Limit.concurrent('slots', 5)];
  const limiter = await RateLimiter.open('memory:', { clock, limits, onEvent: metrics.onEvent });
  return { limiter, metrics, lines, clock };
}

interface Document {
  readonly _aws: {
    readonly Timestamp: number;
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string; readonly Unit: string }[];
    }[];
  };
  readonly [member: string]: unknown;
}

/** What a line breaks of the rules of the specification, and of its JSON schema. */
function problemsOf(line: string): readonly string[] {
  const problems: string[] = [];
  const check = (isRight: boolean, rule: string): void => void (isRight || problems.push(rule));
  check(line.endsWith('\n') && line.indexOf('\n') === line.length - 1, 'one line');
  check(Buffer.byteLength(line) <= 256 * 1024, 'at most 256 KB');
  const document = JSON.parse(line) as Document;
  const { _aws: metadata } = document;
  check(Number.isInteger(metadata.Timestamp), 'Timestamp in whole milliseconds');
  check(metadata.CloudWatchMetrics.length > 0, 'a directive');
  for (const { Namespace, Dimensions, Metrics, ...others } of metadata.CloudWatchMetrics) {
    check(Object.keys(others).length === 0, 'no other member of a directive');
    check(Namespace.length >= 1 && Namespace.length <= 1_024, 'a namespace');
    check(Dimensions.length > 0, 'a set of dimensions');
    for (const set of Dimensions) {
      check(set.length <= 30, 'at most 30 dimensions');
      for (const name of set) {
        const value = document[name];
        check(typeof value === 'string' && value.length >= 1 && value.length <= 1_024, `the dimension ${name} is text`);
      }
    }
    check(Metrics.length >= 1 && Metrics.length <= 100, 'at most 100 metrics');
    for (const { Name, Unit } of Metrics) {
      const values = [document[Name]].flat();
      check(Name.length >= 1 && Name.length <= 1_024, 'a name');
      check(Unit === 'Count' || Unit === 'Seconds', 'a unit of CloudWatch');
      check(values.length >= 1 && values.length <= 100, 'at most 100 values');
      check(
        values.every((value) => Number.isFinite(value)),
        'values are numbers',
      );
    }
  }
  return problems;
}

describe('the metrics for CloudWatch', () => {
  test('lines keep the rules of the embedded metric format, with the dimensions of the caller', async () => {
    const { limiter, metrics, lines, clock } = await writing({ namespace: 'Mine', dimensions: { service: 'api' } });
    for (let call = 0; call < 250; call++) await limiter.tryAcquire({ ...ASK, wait: { timeoutMs: 0 } });
    await limiter.tryAcquire({ ...ASK, consume: { rpm: 2_000 } });
    await limiter.acquire({ ...ASK, consume: { slots: 1 } });
    metrics.flush();
    expect(lines.flatMap(problemsOf)).toEqual([]);
    const documents = lines.map((line) => JSON.parse(line) as Document);
    expect(new Set(documents.map(({ service }) => service))).toEqual(new Set(['api']));
    expect(documents[0]).toMatchObject({
      _aws: { Timestamp: clock.now(), CloudWatchMetrics: [{ Namespace: 'Mine' }] },
    });
    expect(readEmf(lines)).toMatchObject({
      'headgate.decisions decided_by=store outcome=granted resource=gpt-4 service=api': 251,
      'headgate.decisions decided_by=store outcome=denied reason=impossible resource=gpt-4 service=api': 1,
      'headgate.decision.duration.count outcome=granted service=api': 251,
      'headgate.wait.duration.count outcome=granted service=api': 250,
      'headgate.slots.in_use limit=slots resource=gpt-4 service=api': 1,
    });
  });

  test('a metric with more than 100 values and a directive with more than 100 metrics continue in further lines', () => {
    const many = Array.from({ length: 230 }, (_, at) => at);
    const series: EmfSeries[] = many.map((at) => ({
      metric: { name: `metric-${at}`, labels: ['kind'] },
      labels: ['a'],
      values: at === 0 ? many : [1],
    }));
    const lines = buildEmfLines(series, { namespace: 'Headgate', dimensions: {} }, 0).map((line) => `${line}\n`);
    expect(lines.flatMap(problemsOf)).toEqual([]);
    const readings = readEmf(lines);
    expect(readings['metric-0 kind=a']).toBe((229 * 230) / 2);
    expect(Object.values(readings).filter((value) => value === 1)).toHaveLength(229);
  });

  test('a handler is followed by a flush, also if it throws, and a count is written once', async () => {
    const { limiter, metrics, lines } = await writing();
    const handler = metrics.flushAfter(async (event: { readonly fails: boolean }) => {
      await limiter.acquire(ASK);
      if (event.fails) throw new Error('the handler failed');
      return 'done';
    });
    expect(await handler({ fails: false })).toBe('done');
    const counted = (): number | undefined =>
      readEmf(lines)['headgate.decisions decided_by=store outcome=granted resource=gpt-4'];
    expect(counted()).toBe(1);
    await expect(handler({ fails: true })).rejects.toThrow('the handler failed');
    metrics.flush();
    expect(counted()).toBe(2);
  });

  test('without a flush, 10,000 durations are written by themselves, so that the memory stays bounded', async () => {
    const { metrics, lines } = await writing();
    const place = { namespace: 'default', ...ASK, limits: [], tokens: {}, violations: [], paused: null };
    const decision = { granted: true, reason: null, retryAfterMs: null, decidedBy: 'store', durationMs: 1 } as const;
    const event: LimiterEvent = { type: 'decision', ...place, ...decision };
    for (let count = 0; count < 10_001; count++) metrics.onEvent(event);
    expect(readEmf(lines)['headgate.decision.duration.count outcome=granted']).toBe(10_000);
    expect(lines.flatMap(problemsOf)).toEqual([]);
  });

  test.each([
    { dimensions: { service: '' } },
    { dimensions: { _aws: 'x' } },
    { dimensions: { resource: 'billing' } },
    { dimensions: { 'headgate.tokens': 'x' } },
    { dimensions: { '': 'x' } },
    { dimensions: { ['n'.repeat(256)]: 'x' } },
  ])('dimensions that CloudWatch would drop, or that a metric has itself, are refused: %j', (options) => {
    expect(() => new CloudWatchMetrics(options)).toThrow('dimensions');
  });
});
