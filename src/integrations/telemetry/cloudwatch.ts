import { ValidationError } from '../../core/errors.js';
import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { buildEmfLines, type EmfSeries } from './emf-line.js';
import { EventCounter } from './event-counter.js';
import { METRICS } from './metric-table.js';

/** Options of `CloudWatchMetrics`. */
export interface CloudWatchOptions {
  /** Writes one line of JSON, which ends with a line break. Default: standard output, where Lambda reads it. */
  readonly write?: (line: string) => void;
  /** The CloudWatch namespace. Default: `Headgate`. */
  readonly namespace?: string;
  /** Dimensions of every metric, such as the service. CloudWatch bills each combination of values as a metric. */
  readonly dimensions?: Readonly<Record<string, string>>;
  /** The time of the limiter's clock, in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
}

/** The durations that are kept until they are written without a flush. */
const MAX_BUFFERED = 10_000;

/** A metric has at most 4 labels of its own, and CloudWatch allows 30 dimensions. */
const MAX_DIMENSIONS = 26;

/** The longest name of a dimension in the format. */
const MAX_NAME = 250;

/** A document has one member for each name: a dimension of the same name would be lost. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  '_aws',
  ...Object.values(METRICS).flatMap(({ name, labels }) => [name, ...labels]),
]);

/**
 * Counts the events of a limiter, and writes them in the embedded metric format of CloudWatch. Pass `onEvent` to the limiter.
 * Nothing is sent from this process: CloudWatch reads the metrics from the log.
 */
export class CloudWatchMetrics {
  readonly onEvent: (event: LimiterEvent) => void;
  readonly #counter: EventCounter;
  readonly #write: (line: string) => void;
  readonly #now: () => number;
  readonly #place: { readonly namespace: string; readonly dimensions: Readonly<Record<string, string>> };
  #series = new Map<string, EmfSeries>();
  #buffered = 0;

  constructor(options: CloudWatchOptions = {}) {
    const { write = writeToStdout, namespace = 'Headgate', dimensions = {}, now = Date.now } = options;
    checkDimensions(dimensions);
    this.#write = write;
    this.#now = now;
    this.#place = { namespace, dimensions };
    this.#counter = new EventCounter(
      {
        add: (key, amount, labels) => {
          const { values } = this.#seriesOf(key, labels);
          values[0] = (values[0] ?? 0) + amount;
        },
        observe: (key, value, labels) => {
          this.#seriesOf(key, labels).values.push(value);
          this.#buffered += 1;
          if (this.#buffered >= MAX_BUFFERED) this.flush();
        },
      },
      now,
    );
    this.onEvent = this.#counter.onEvent;
  }

  /** Writes what was counted since the last flush, and the gauges as they are now. */
  flush(): void {
    const gauges = this.#counter.readGauges().map(({ key, value, labels }) => {
      return { metric: METRICS[key], labels, values: [value] };
    });
    const series = [...this.#series.values(), ...gauges];
    // First, so that a write that throws does not make the next flush count twice.
    this.#series = new Map();
    this.#buffered = 0;
    for (const line of buildEmfLines(series, this.#place, this.#now())) this.#write(`${line}\n`);
  }

  /** The handler of a Lambda function, with a flush after each invocation, also after one that throws. */
  flushAfter<Args extends readonly unknown[], Result>(
    handler: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result> {
    return async (...args) => {
      try {
        return await handler(...args);
      } finally {
        this.flush();
      }
    };
  }

  #seriesOf(key: keyof typeof METRICS, labels: readonly string[]): EmfSeries {
    const id = `${key}\n${labels.join('\n')}`;
    const known = this.#series.get(id);
    if (known !== undefined) return known;
    const series = { metric: METRICS[key], labels, values: [] };
    this.#series.set(id, series);
    return series;
  }
}

function checkDimensions(dimensions: Readonly<Record<string, string>>): void {
  const entries = Object.entries(dimensions);
  if (entries.length > MAX_DIMENSIONS) {
    throw new ValidationError('dimensions', `at most ${MAX_DIMENSIONS} dimensions`, `${entries.length} dimensions`);
  }
  for (const [name, value] of entries) {
    if (name === '' || name.length > MAX_NAME || OWN_NAMES.has(name)) {
      const expected = `names of 1 to ${MAX_NAME} characters other than _aws and the metrics and labels of Headgate`;
      throw new ValidationError('dimensions', expected, name);
    }
    if (typeof value === 'string' && value !== '' && value.length <= 1_024) continue;
    throw new ValidationError(`dimensions.${name}`, 'a string of 1 to 1024 characters', value);
  }
}

function writeToStdout(line: string): void {
  process.stdout.write(line);
}
