import { type Resources, substitute } from '../intrinsics.js';
import { FUNCTIONS, RESOURCES } from '../names.js';

/** CloudFormation replaces the names in `${}`. */
const TABLE = ['TableName', `\${${RESOURCES.table}}`];
const STREAM = ['FunctionName', `\${${FUNCTIONS.stream}}`];
const RECONCILER = ['FunctionName', `\${${FUNCTIONS.reconciler}}`];
const QUEUE = ['QueueName', `\${${RESOURCES.deadLetters}.QueueName}`];

const COLUMNS = 3;
const WIDTH = 8;
const HEIGHT = 6;

type Metric = readonly [...names: string[], options: { readonly stat: string; readonly label: string }];

interface Chart {
  readonly title: string;
  readonly metrics: readonly Metric[];
}

/** The charts, in rows: the table, its effect on calls, the stream, the reconciler. */
const CHARTS: readonly Chart[] = [
  {
    title: 'Units of the table, per minute',
    metrics: [
      ['AWS/DynamoDB', 'ConsumedWriteCapacityUnits', ...TABLE, { stat: 'Sum', label: 'write' }],
      ['AWS/DynamoDB', 'ConsumedReadCapacityUnits', ...TABLE, { stat: 'Sum', label: 'read' }],
    ],
  },
  {
    title: 'Throttled, per minute',
    metrics: [
      ['AWS/DynamoDB', 'WriteThrottleEvents', ...TABLE, { stat: 'Sum', label: 'writes' }],
      ['AWS/DynamoDB', 'ReadThrottleEvents', ...TABLE, { stat: 'Sum', label: 'reads' }],
    ],
  },
  {
    title: 'Latency of a write, in ms',
    metrics: ['p50', 'p99'].map((stat) => [
      'AWS/DynamoDB',
      'SuccessfulRequestLatency',
      ...TABLE,
      'Operation',
      'UpdateItem',
      { stat, label: stat },
    ]),
  },
  {
    title: 'Refused writes: stale guesses and denials, per minute',
    metrics: [
      ['AWS/DynamoDB', 'ConditionalCheckFailedRequests', ...TABLE, { stat: 'Sum', label: 'conditions' }],
      ['AWS/DynamoDB', 'TransactionConflict', ...TABLE, { stat: 'Sum', label: 'conflicts' }],
    ],
  },
  {
    title: 'How far the stream is behind, in ms',
    metrics: [['AWS/Lambda', 'IteratorAge', ...STREAM, { stat: 'Maximum', label: 'behind' }]],
  },
  {
    title: 'Changes that were given up',
    metrics: [['AWS/SQS', 'ApproximateNumberOfMessagesVisible', ...QUEUE, { stat: 'Maximum', label: 'in the queue' }]],
  },
  { title: 'Function on the stream', metrics: ofFunction(STREAM) },
  { title: 'Reconciler', metrics: ofFunction(RECONCILER) },
];

function ofFunction(dimension: readonly string[]): Metric[] {
  return [
    ['AWS/Lambda', 'Invocations', ...dimension, { stat: 'Sum', label: 'invocations' }],
    ['AWS/Lambda', 'Errors', ...dimension, { stat: 'Sum', label: 'errors' }],
    ['AWS/Lambda', 'Duration', ...dimension, { stat: 'p99', label: 'duration p99, ms' }],
  ];
}

/** Queries over the log lines of the functions. */
const REPORTS = [
  {
    title: 'What the function on the stream did',
    log: RESOURCES.streamLog,
    query:
      "filter message = 'headgate stream' | stats sum(records), sum(failed), sum(poison), sum(archived), sum(splits) by bin(5m)",
  },
  {
    title: 'What the reconciler did',
    log: RESOURCES.reconcilerLog,
    query:
      "filter message = 'headgate reconciler' | stats sum(visited), sum(reclaimed), sum(healed), sum(merged), sum(failed) by bin(5m)",
  },
] as const;

export function dashboard(): Resources {
  return {
    Dashboard: {
      Type: 'AWS::CloudWatch::Dashboard',
      Properties: {
        DashboardName: substitute('${AWS::StackName}'),
        DashboardBody: substitute(JSON.stringify({ widgets: widgets() })),
      },
    },
  };
}

function widgets(): readonly object[] {
  const charts = CHARTS.map(({ title, metrics }) => ({
    type: 'metric',
    properties: { title, metrics, region: '${AWS::Region}', view: 'timeSeries', period: 60 },
  }));
  const reports = REPORTS.map(({ title, log, query }) => ({
    type: 'log',
    properties: { title, query: `SOURCE '\${${log}}' | ${query}`, region: '${AWS::Region}', view: 'table' },
  }));
  return [...charts, ...reports].map((widget, at) => ({
    ...widget,
    x: (at % COLUMNS) * WIDTH,
    y: Math.floor(at / COLUMNS) * HEIGHT,
    width: WIDTH,
    height: HEIGHT,
  }));
}
