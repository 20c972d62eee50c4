/** What one metric has for one set of labels: one sum or level, or many durations. */
export interface EmfSeries {
  readonly metric: { readonly name: string; readonly unit?: 's'; readonly labels: readonly string[] };
  readonly labels: readonly string[];
  readonly values: number[];
}

interface Place {
  readonly namespace: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

/**
 * Limits of the format: values of one metric in a line, and metrics in a directive.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
const MAX_VALUES = 100;
const MAX_METRICS = 100;

interface LineMetric {
  readonly name: string;
  readonly unit: string;
  readonly values: readonly number[];
}

/** Documents of the embedded metric format. Metrics whose dimensions have the same values share a document. */
export function buildEmfLines(series: readonly EmfSeries[], place: Place, nowMs: number): readonly string[] {
  const byDimensions = new Map<string, { readonly dimensions: Place['dimensions']; readonly metrics: LineMetric[] }>();
  for (const { metric, labels, values } of series) {
    const dimensions = { ...place.dimensions, ...dimensionsOf(metric.labels, labels) };
    const key = JSON.stringify(dimensions);
    const group = byDimensions.get(key) ?? { dimensions, metrics: [] };
    byDimensions.set(key, group);
    group.metrics.push({ name: metric.name, unit: metric.unit === 's' ? 'Seconds' : 'Count', values });
  }
  return [...byDimensions.values()].flatMap(({ dimensions, metrics }) =>
    chunks(metrics, MAX_METRICS).flatMap((some) => linesOf(some, dimensions, place.namespace, nowMs)),
  );
}

/** As many lines as the metric with the most values needs. */
function linesOf(
  metrics: readonly LineMetric[],
  dimensions: Place['dimensions'],
  namespace: string,
  nowMs: number,
): readonly string[] {
  const lines: string[] = [];
  for (let from = 0; ; from += MAX_VALUES) {
    const some = metrics.filter(({ values }) => values.length > from);
    if (some.length === 0) return lines;
    const directive = {
      Namespace: namespace,
      Dimensions: [Object.keys(dimensions)],
      Metrics: some.map(({ name, unit }) => ({ Name: name, Unit: unit })),
    };
    const members = some.map(({ name, values }) => [name, valueOf(values.slice(from, from + MAX_VALUES))]);
    const document = { _aws: { Timestamp: nowMs, CloudWatchMetrics: [directive] }, ...dimensions };
    lines.push(JSON.stringify({ ...document, ...Object.fromEntries(members) }));
  }
}

function valueOf(values: readonly number[]): number | readonly number[] {
  return values.length === 1 ? (values[0] ?? 0) : values;
}

/** A dimension must have a value: `none` stands for an empty label. */
function dimensionsOf(names: readonly string[], labels: readonly string[]): Place['dimensions'] {
  return Object.fromEntries(names.map((name, at) => [name, labels[at] === '' ? 'none' : (labels[at] ?? 'none')]));
}

function chunks<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const all: (readonly T[])[] = [];
  for (let from = 0; from < items.length; from += size) all.push(items.slice(from, from + size));
  return all;
}
