import { expect, test } from 'vitest';
import { Counter, Gauge, Histogram } from './prometheus.js';

test('a counter prints one line for each set of labels', () => {
  const counter = new Counter('asks_total', 'Asks.', ['outcome', 'resource']);
  counter.add(1, 'granted', 'gpt-4');
  counter.add(2, 'granted', 'gpt-4');
  counter.add(1, 'denied', 'say "hi"\\\n');
  expect(counter.render()).toBe(
    [
      '# HELP asks_total Asks.',
      '# TYPE asks_total counter',
      'asks_total{outcome="granted",resource="gpt-4"} 3',
      'asks_total{outcome="denied",resource="say \\"hi\\"\\\\\\n"} 1',
      '',
    ].join('\n'),
  );
});

test('a histogram counts values at or below each bound, cumulatively', () => {
  const histogram = new Histogram('seconds', 'Duration.', ['op'], [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 5]) histogram.observe(value, 'acquire');
  expect(histogram.render()).toContain(
    [
      'seconds_bucket{op="acquire",le="0.1"} 2',
      'seconds_bucket{op="acquire",le="1"} 3',
      'seconds_bucket{op="acquire",le="+Inf"} 4',
      'seconds_sum{op="acquire"} 5.65',
      'seconds_count{op="acquire"} 4',
    ].join('\n'),
  );
});

test('a gauge prints the last value', () => {
  const gauge = new Gauge('slots', 'Slots in use.');
  gauge.set(3);
  gauge.add(-1);
  expect(gauge.render()).toContain('\nslots 2\n');
});

test('series beyond 10,000 are counted together, so that names of callers cannot fill the memory', () => {
  const counter = new Counter('asks_total', 'Asks.', ['resource']);
  for (let at = 0; at < 10_010; at++) counter.add(1, `resource-${at}`);
  expect(counter.render()).toContain('asks_total{resource="other"} 10\n');
});
