import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';

/**
 * Values by metric and labels, such as `headgate.decisions outcome=granted resource=gpt-4`. Histograms have `.count`
 * and `.sum`.
 */
export type Readings = Readonly<Record<string, number>>;

export function readingKey(name: string, labels: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(labels)
    .filter(([, value]) => value !== '' && value !== 'none')
    .map(([label, value]) => `${label}=${String(value)}`);
  return [name, ...parts.toSorted()].join(' ');
}

/** Without zeros: a format may leave out what never happened. */
export function readingsOf(entries: Iterable<readonly [key: string, value: number]>): Readings {
  const sums = new Map<string, number>();
  for (const [key, value] of entries) sums.set(key, (sums.get(key) ?? 0) + value);
  const rounded = [...sums].map(([key, value]) => [key, Math.round(value * 1_000) / 1_000] as const);
  return Object.fromEntries(rounded.filter(([, value]) => value !== 0).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The values of Prometheus text, under the names of OpenTelemetry. */
export function readPrometheus(text: string): Readings {
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !line.includes('_bucket{'));
  return readingsOf(
    samples.map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text_]) => [label, text_] as const);
      return [readingKey(openTelemetryName(name), Object.fromEntries(pairs)), Number(value)] as const;
    }),
  );
}

function openTelemetryName(name: string): string {
  return name
    .replace(/_total$/, '')
    .replace(/_seconds_(count|sum)$/, '.$1')
    .replaceAll('_', '.')
    .replace('slots.in.use', 'slots.in_use');
}

/** The sums and levels of documents in the embedded metric format. A level that was written twice is added up. */
export function readEmf(lines: readonly string[]): Readings {
  return readingsOf(
    lines.flatMap((line) => {
      const document = JSON.parse(line) as Record<string, unknown> & {
        readonly _aws: {
          readonly CloudWatchMetrics: readonly [
            { readonly Dimensions: readonly string[][]; readonly Metrics: readonly { Name: string; Unit: string }[] },
          ];
        };
      };
      const { _aws: metadata } = document;
      const [{ Dimensions, Metrics }] = metadata.CloudWatchMetrics;
      const labels = Object.fromEntries((Dimensions[0] ?? []).map((name) => [name, document[name]]));
      return Metrics.flatMap(({ Name, Unit }) => {
        const values = [document[Name]].flat() as number[];
        const sum = values.reduce((total, value) => total + value, 0);
        if (Unit !== 'Seconds') return [[readingKey(Name, labels), sum] as const];
        return [
          [readingKey(`${Name}.count`, labels), values.length] as const,
          [readingKey(`${Name}.sum`, labels), sum] as const,
        ];
      });
    }),
  );
}

class OnDemand extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

/** A meter of the real SDK, and its values. */
export function openMeter() {
  const reader = new OnDemand();
  const provider = new MeterProvider({ readers: [reader] });
  const collect = async () => (await reader.collect()).resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  const read = async (): Promise<Readings> => {
    const entries = (await collect()).flatMap(({ descriptor, dataPointType, dataPoints }) =>
      dataPoints.flatMap(({ attributes, value }): (readonly [string, number])[] => {
        if (dataPointType !== DataPointType.HISTOGRAM) {
          return [[readingKey(descriptor.name, attributes), value as number]];
        }
        const { count, sum = 0 } = value as { readonly count: number; readonly sum?: number };
        return [
          [readingKey(`${descriptor.name}.count`, attributes), count],
          [readingKey(`${descriptor.name}.sum`, attributes), sum],
        ];
      }),
    );
    return readingsOf(entries);
  };
  return { meter: provider.getMeter('headgate'), collect, read, close: () => provider.shutdown() };
}
