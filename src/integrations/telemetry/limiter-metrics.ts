import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { EventCounter, type MetricSink } from './event-counter.js';
import { type CounterKey, type GaugeKey, type HistogramKey, METRICS, metricsOf, SECONDS } from './metric-table.js';
import { Counter, Gauge, Histogram } from './prometheus.js';

/** Counts the events of a limiter, and prints them as Prometheus text. Pass `onEvent` to the limiter. */
export class LimiterMetrics {
  readonly #counters = build<CounterKey, Counter>('counter', (...parts) => new Counter(...parts));
  readonly #histograms = build<HistogramKey, Histogram>('histogram', (...parts) => new Histogram(...parts, SECONDS));
  readonly #gauges = build<GaugeKey, Gauge>('gauge', (...parts) => new Gauge(...parts));
  readonly #counter: EventCounter;
  readonly onEvent: (event: LimiterEvent) => void;

  /** `now`: the time of the limiter's clock, in milliseconds. Default: `Date.now`. */
  constructor(options: { readonly now?: () => number } = {}) {
    const sink: MetricSink = {
      add: (key, amount, labels) => this.#counters[key].add(amount, ...labels),
      observe: (key, value, labels) => this.#histograms[key].observe(value, ...labels),
    };
    this.#counter = new EventCounter(sink, options.now);
    this.onEvent = this.#counter.onEvent;
  }

  /** Prometheus text, version 0.0.4. */
  render(): string {
    for (const { key, value, labels } of this.#counter.readGauges()) this.#gauges[key].set(value, ...labels);
    const metrics = { ...this.#counters, ...this.#histograms, ...this.#gauges };
    return Object.keys(METRICS)
      .map((key) => metrics[key as keyof typeof METRICS].render())
      .join('');
  }
}

function build<Key extends string, M>(
  kind: 'counter' | 'gauge' | 'histogram',
  create: (name: string, help: string, labels: readonly string[]) => M,
): Readonly<Record<Key, M>> {
  const entries = metricsOf(kind).map(([key, { name, unit, help, labels }]) => [
    key,
    create(prometheusName(name, kind, unit), help, labels),
  ]);
  return Object.fromEntries(entries) as Record<Key, M>;
}

/** `headgate.decision.duration` in seconds becomes `headgate_decision_duration_seconds`; counters end in `_total`. */
function prometheusName(name: string, kind: string, unit: 's' | undefined): string {
  return `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}${kind === 'counter' ? '_total' : ''}`;
}
