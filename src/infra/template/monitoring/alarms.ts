import { attribute, ref, type Resource, type Resources, type Value } from '../intrinsics.js';
import { LOG_METRIC_NAMESPACE, LOG_METRICS } from './log-metrics.js';
import { FUNCTIONS, PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { alarmTopic } from './alarm-topic.js';

const FIVE_MINUTES = 300;
const HOUR = 3_600;
const BEHIND_MS = 15 * 60_000;

/** DynamoDB counts system errors per operation. These are the operations that the code uses most. */
const COUNTED_OPERATIONS = ['UpdateItem', 'PutItem', 'GetItem', 'BatchGetItem', 'Query', 'TransactWriteItems'];

interface Alarm {
  readonly description: string;
  /** One metric, or a sum of several. */
  readonly of: Readonly<Record<string, Value>>;
  readonly operator?: 'GreaterThanThreshold' | 'LessThanThreshold' | 'GreaterThanOrEqualToThreshold';
  readonly threshold: number;
  /** The number of breaching periods that raise the alarm, and the number of periods examined. */
  readonly periods?: number;
  readonly outOf?: number;
  /** What missing data means. Set for each alarm: no data is usually, but not always, good. */
  readonly silence: 'breaching' | 'notBreaching';
}

const ALARMS: Readonly<Record<string, Alarm>> = {
  StreamErrorsAlarm: {
    description: 'The function on the stream fails again and again: usage is not counted, audit is not archived',
    of: metric('AWS/Lambda', 'Errors', 'Sum', FIVE_MINUTES, { FunctionName: ref(FUNCTIONS.stream) }),
    threshold: 0,
    periods: 3,
    // The function runs only when the table changes.
    silence: 'notBreaching',
  },
  StreamBehindAlarm: {
    description: 'The function on the stream is 15 minutes behind: after 22 hours, changes are given up',
    of: metric('AWS/Lambda', 'IteratorAge', 'Maximum', FIVE_MINUTES, { FunctionName: ref(FUNCTIONS.stream) }),
    threshold: BEHIND_MS,
    periods: 2,
    silence: 'notBreaching',
  },
  DeadLettersAlarm: {
    description: 'Changes of the table were given up: usage does not include them',
    of: metric('AWS/SQS', 'ApproximateNumberOfMessagesVisible', 'Maximum', FIVE_MINUTES, {
      QueueName: attribute(RESOURCES.deadLetters, 'QueueName'),
    }),
    threshold: 0,
    // An empty queue stops reporting the metric after some hours.
    silence: 'notBreaching',
  },
  SkippedAlarm: {
    description: 'The function on the stream skipped a change that it does not understand',
    of: metric(LOG_METRIC_NAMESPACE, LOG_METRICS.skipped, 'Sum', FIVE_MINUTES, {}),
    threshold: 0,
    silence: 'notBreaching',
  },
  ThrottledWritesAlarm: {
    description: 'DynamoDB throttles writes: acquires wait or are refused as contended',
    of: metric('AWS/DynamoDB', 'WriteThrottleEvents', 'Sum', FIVE_MINUTES, { TableName: ref(RESOURCES.table) }),
    threshold: 0,
    periods: 2,
    outOf: 3,
    // The metric exists only when requests were throttled.
    silence: 'notBreaching',
  },
  SystemErrorsAlarm: {
    description: 'DynamoDB itself fails: calls follow their outage policy',
    of: sumOfSystemErrors(),
    operator: 'GreaterThanOrEqualToThreshold',
    threshold: 5,
    periods: 2,
    silence: 'notBreaching',
  },
  ReconcilerErrorsAlarm: {
    description: 'Sweeps of the reconciler fail: slots of crashed processes are reclaimed only when a call is refused',
    of: metric('AWS/Lambda', 'Errors', 'Sum', HOUR, { FunctionName: ref(FUNCTIONS.reconciler) }),
    operator: 'GreaterThanOrEqualToThreshold',
    // Lambda tries each sweep three times.
    threshold: 3,
    silence: 'notBreaching',
  },
  UnrepairedAlarm: {
    description: 'The reconciler finds buckets that it cannot repair, hour after hour',
    of: metric(LOG_METRIC_NAMESPACE, LOG_METRICS.unrepaired, 'Sum', HOUR, {}),
    threshold: 0,
    periods: 2,
    silence: 'notBreaching',
  },
  ReconcilerAbsentAlarm: {
    description: 'The reconciler did not run for an hour',
    of: metric('AWS/Lambda', 'Invocations', 'Sum', HOUR, { FunctionName: ref(FUNCTIONS.reconciler) }),
    operator: 'LessThanThreshold',
    threshold: 1,
    // A function that is not invoked has no metric, so missing data must raise the alarm.
    silence: 'breaching',
  },
};

export function alarms(): Resources {
  return {
    ...alarmTopic(),
    AlarmSubscription: {
      Type: 'AWS::SNS::Subscription',
      Condition: CONDITIONS.hasAlarmEmail,
      Properties: { TopicArn: ref(RESOURCES.alarms), Protocol: 'email', Endpoint: ref(PARAMETERS.alarmEmail) },
    },
    ...Object.fromEntries(Object.entries(ALARMS).map(([name, alarm]) => [name, resourceOf(alarm)])),
  };
}

function resourceOf({ description, of, operator, threshold, periods = 1, outOf = periods, silence }: Alarm): Resource {
  return {
    Type: 'AWS::CloudWatch::Alarm',
    Properties: {
      AlarmDescription: `Headgate: ${description}`,
      ...of,
      ComparisonOperator: operator ?? 'GreaterThanThreshold',
      Threshold: threshold,
      EvaluationPeriods: outOf,
      DatapointsToAlarm: periods,
      TreatMissingData: silence,
      AlarmActions: [ref(RESOURCES.alarms)],
      OKActions: [ref(RESOURCES.alarms)],
    },
  };
}

function metric(
  namespace: string,
  name: Value,
  statistic: string,
  periodSec: number,
  dimensions: Readonly<Record<string, Value>>,
): Readonly<Record<string, Value>> {
  return { ...measure(namespace, name, dimensions), Statistic: statistic, Period: periodSec };
}

function measure(namespace: string, name: Value, dimensions: Readonly<Record<string, Value>>) {
  return {
    Namespace: namespace,
    MetricName: name,
    Dimensions: Object.entries(dimensions).map(([Name, value]) => ({ Name, Value: value })),
  };
}

function sumOfSystemErrors(): Readonly<Record<string, Value>> {
  const parts = COUNTED_OPERATIONS.map((operation, at) => ({
    Id: `m${at}`,
    ReturnData: false,
    MetricStat: {
      Metric: measure('AWS/DynamoDB', 'SystemErrors', { TableName: ref(RESOURCES.table), Operation: operation }),
      Period: FIVE_MINUTES,
      Stat: 'Sum',
    },
  }));
  const Expression = parts.map(({ Id }) => `FILL(${Id}, 0)`).join(' + ');
  return { Metrics: [{ Id: 'errors', Label: 'System errors', Expression, ReturnData: true }, ...parts] };
}
