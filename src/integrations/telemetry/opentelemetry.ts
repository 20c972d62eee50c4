import type { Attributes, Meter, ObservableResult, Tracer } from '@opentelemetry/api';
import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { EventCounter } from './event-counter.js';
import { type CounterKey, type GaugeKey, type HistogramKey, METRICS, metricsOf, SECONDS } from './metric-table.js';
import { traceEvent } from './trace-event.js';

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** Such as `metrics.getMeter('headgate')`. Left out: no metrics. */
  readonly meter?: Meter;
  /** Such as `trace.getTracer('headgate')`. Left out: no spans. */
  readonly tracer?: Tracer;
  /** The time of the limiter's clock, in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
}

/** The listener that `openTelemetry` returns. Its methods go into the options of the limiter. */
export interface OpenTelemetryListener {
  /** The listener of a limiter. */
  readonly onEvent: (event: LimiterEvent) => void;
  /** Ends the observation of the gauges. */
  close(): void;
}

/**
 * Metrics of a limiter for a meter, and a span for each decision and each end of a lease for a tracer. Only spans name
 * entities.
 */
export function openTelemetry(options: OpenTelemetryOptions): OpenTelemetryListener {
  const { meter, tracer, now = Date.now } = options;
  const metrics = meter === undefined ? null : countOn(meter, now);
  return {
    onEvent: (event) => {
      metrics?.onEvent(event);
      if (tracer !== undefined) traceEvent(tracer, event, now());
    },
    close: () => metrics?.close(),
  };
}

function countOn(meter: Meter, now: () => number): OpenTelemetryListener {
  const counters = instruments<CounterKey, ReturnType<Meter['createCounter']>>('counter', (name, options) =>
    meter.createCounter(name, options),
  );
  const histograms = instruments<HistogramKey, ReturnType<Meter['createHistogram']>>('histogram', (name, options) =>
    meter.createHistogram(name, { ...options, advice: { explicitBucketBoundaries: SECONDS } }),
  );
  // Up and down: the sum over all processes is the number of slots in use.
  const gauges = instruments<GaugeKey, ReturnType<Meter['createObservableUpDownCounter']>>('gauge', (name, options) =>
    meter.createObservableUpDownCounter(name, options),
  );
  const counter = new EventCounter(
    {
      add: (key, amount, labels) => counters[key].add(amount, attributesOf(METRICS[key].labels, labels)),
      observe: (key, value, labels) => histograms[key].record(value, attributesOf(METRICS[key].labels, labels)),
    },
    now,
  );
  const observed = (Object.keys(gauges) as GaugeKey[]).map((wanted) => {
    const observe = (result: ObservableResult): void => {
      for (const { key, value, labels } of counter.readGauges()) {
        if (key === wanted) result.observe(value, attributesOf(METRICS[key].labels, labels));
      }
    };
    gauges[wanted].addCallback(observe);
    return () => gauges[wanted].removeCallback(observe);
  });
  return {
    onEvent: counter.onEvent,
    close: () => {
      for (const stop of observed) stop();
    },
  };
}

function instruments<Key extends string, I>(
  kind: 'counter' | 'gauge' | 'histogram',
  create: (name: string, options: { readonly description: string; readonly unit?: string }) => I,
): Readonly<Record<Key, I>> {
  const entries = metricsOf(kind).map(([key, { name, help, unit }]) => [
    key,
    create(name, { description: help, ...(unit === undefined ? {} : { unit }) }),
  ]);
  return Object.fromEntries(entries) as Record<Key, I>;
}

/** An attribute without a value is left out. */
function attributesOf(names: readonly string[], labels: readonly string[]): Attributes {
  const attributes: Attributes = {};
  for (const [at, name] of names.entries()) if (labels[at] !== '') attributes[name] = labels[at];
  return attributes;
}
