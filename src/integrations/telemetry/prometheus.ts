/** The values of the labels of one series, in the order of the metric's label names. */
type Labels = readonly string[];

/** A separator that no label value contains after escaping. */
const SEPARATOR = '\n';

abstract class Metric<Series> {
  readonly name: string;
  readonly #type: string;
  readonly #help: string;
  readonly #labelNames: readonly string[];
  readonly #maxSeries: number;
  readonly #series = new Map<string, { readonly labels: string; readonly series: Series }>();

  constructor(name: string, type: string, help: string, labelNames: readonly string[], maxSeries = 10_000) {
    this.name = name;
    this.#type = type;
    this.#help = help;
    this.#labelNames = labelNames;
    this.#maxSeries = maxSeries;
  }

  protected abstract create(): Series;
  protected abstract lines(labels: string, series: Series): readonly string[];

  /** Series beyond the bound are counted together, under the label value `other`. */
  protected of(labels: Labels): Series {
    const key = labels.length === 1 ? (labels[0] ?? '') : labels.join(SEPARATOR);
    const known = this.#series.get(key);
    if (known !== undefined) return known.series;
    if (this.#series.size >= this.#maxSeries && labels.some((label) => label !== OTHER)) {
      return this.of(labels.map(() => OTHER));
    }
    const series = this.create();
    this.#series.set(key, { labels: this.#print(labels), series });
    return series;
  }

  #print(labels: Labels): string {
    return this.#labelNames.map((name, at) => `${name}="${escape(labels[at] ?? '')}"`).join(',');
  }

  render(): string {
    const head = [`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.#type}`];
    const lines = [...this.#series.values()].flatMap(({ labels, series }) => this.lines(labels, series));
    return `${[...head, ...lines].join('\n')}\n`;
  }
}

const OTHER = 'other';

/** A number that only grows. */
export class Counter extends Metric<{ value: number }> {
  constructor(name: string, help: string, labelNames: readonly string[] = [], type = 'counter') {
    super(name, type, help, labelNames);
  }

  add(amount: number, ...labels: Labels): void {
    this.of(labels).value += amount;
  }

  protected create() {
    return { value: 0 };
  }

  protected lines(labels: string, { value }: { readonly value: number }) {
    return [`${this.name}${braces(labels)} ${value}`];
  }
}

/** A number that grows and shrinks. */
export class Gauge extends Counter {
  constructor(name: string, help: string, labelNames: readonly string[] = []) {
    super(name, help, labelNames, 'gauge');
  }

  set(value: number, ...labels: Labels): void {
    this.of(labels).value = value;
  }
}

interface Distribution {
  readonly counts: number[];
  sum: number;
  count: number;
}

/** Counts of values by upper bound. */
export class Histogram extends Metric<Distribution> {
  readonly #bounds: readonly number[];

  constructor(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]) {
    super(name, 'histogram', help, labelNames);
    this.#bounds = bounds;
  }

  observe(value: number, ...labels: Labels): void {
    const series = this.of(labels);
    series.sum += value;
    series.count += 1;
    for (let at = 0; at < this.#bounds.length; at++) {
      if (value > (this.#bounds[at] ?? 0)) continue;
      series.counts[at] = (series.counts[at] ?? 0) + 1;
      return;
    }
  }

  protected create(): Distribution {
    return { counts: this.#bounds.map(() => 0), sum: 0, count: 0 };
  }

  protected lines(labels: string, { counts, sum, count }: Distribution) {
    let below = 0;
    const prefix = labels === '' ? '' : `${labels},`;
    const buckets = this.#bounds.map((bound, at) => {
      below += counts[at] ?? 0;
      return `${this.name}_bucket{${prefix}le="${bound}"} ${below}`;
    });
    return [
      ...buckets,
      `${this.name}_bucket{${prefix}le="+Inf"} ${count}`,
      `${this.name}_sum${braces(labels)} ${sum}`,
      `${this.name}_count${braces(labels)} ${count}`,
    ];
  }
}

function braces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}

function escape(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
