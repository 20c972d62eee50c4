interface MetricDefinition {
  /** The name in OpenTelemetry and CloudWatch. */
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** Seconds; left out: a count. */
  readonly unit?: 's';
  readonly help: string;
  /** The names of the labels, in the order in which their values are passed. No label names an entity: there may be millions. */
  readonly labels: readonly string[];
}

/** Every metric of a limiter. Prometheus, OpenTelemetry and CloudWatch print the same. */
export const METRICS = {
  decisions: {
    name: 'headgate.decisions',
    kind: 'counter',
    help: 'Decisions, one for each call.',
    labels: ['outcome', 'reason', 'decided_by', 'resource'],
  },
  verdicts: {
    name: 'headgate.limit.verdicts',
    kind: 'counter',
    help: 'Limits that were asked, one for each limit and level of a decision.',
    labels: ['limit', 'level', 'exceeded', 'refused'],
  },
  durations: {
    name: 'headgate.decision.duration',
    kind: 'histogram',
    unit: 's',
    help: 'From the call to the decision, including a wait for tokens.',
    labels: ['outcome'],
  },
  waits: {
    name: 'headgate.wait.duration',
    kind: 'histogram',
    unit: 's',
    help: 'From the first refusal to the decision, of calls that may wait.',
    labels: ['outcome'],
  },
  slots: {
    name: 'headgate.slots.in_use',
    kind: 'gauge',
    help: 'Slots that leases of this process hold.',
    labels: ['limit', 'resource'],
  },
  tokens: {
    name: 'headgate.tokens',
    kind: 'counter',
    help: 'Tokens that grants reserved, commits settled, rollbacks refunded and expired leases left unsettled.',
    labels: ['state', 'limit', 'resource'],
  },
  leases: { name: 'headgate.leases.ended', kind: 'counter', help: 'Leases that ended.', labels: ['how'] },
  throttles: {
    name: 'headgate.provider.throttles',
    kind: 'counter',
    help: 'Calls that the provider refused although the limits had allowed them.',
    labels: ['dimension', 'resource'],
  },
  outage: { name: 'headgate.store.outage', kind: 'gauge', help: '1 while the store does not answer.', labels: [] },
  changes: {
    name: 'headgate.changes',
    kind: 'counter',
    help: 'Changes of config, pauses, splits and merges.',
    labels: ['type'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

type MetricsOf<Kind extends MetricDefinition['kind']> = {
  [Key in keyof typeof METRICS]: (typeof METRICS)[Key]['kind'] extends Kind ? Key : never;
}[keyof typeof METRICS];

export type CounterKey = MetricsOf<'counter'>;
export type HistogramKey = MetricsOf<'histogram'>;
export type GaugeKey = MetricsOf<'gauge'>;

/** The upper bounds of durations, in seconds: from a decision in memory to one that waited. */
export const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** The definitions of one kind, with their keys. */
export function metricsOf<Kind extends MetricDefinition['kind']>(kind: Kind) {
  const entries = Object.entries(METRICS) as [keyof typeof METRICS, MetricDefinition][];
  return entries.filter(([, metric]) => metric.kind === kind) as [MetricsOf<Kind>, MetricDefinition][];
}
