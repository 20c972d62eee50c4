import { ref, type Resource, type Resources, sub, type Value } from './intrinsics.js';
import { RESOURCES } from './names.js';

/** What only the logs tell, as metrics. They are of the stack: several may be in one region. */
export const LOG_METRICS = {
  passedOver: metricName('passed-over'),
  unrepaired: metricName('unrepaired'),
} as const;

export const LOG_METRIC_NAMESPACE = 'Headgate';

/** A metric exists from the first line that matches: nothing is paid for one that has nothing to say. */
export function logMetrics(): Resources {
  return {
    PassedOverFilter: filter(
      RESOURCES.streamLog,
      '{ $.message = "headgate stream: a record was passed over" }',
      LOG_METRICS.passedOver,
      '1',
    ),
    UnrepairedFilter: filter(
      RESOURCES.reconcilerLog,
      '{ $.message = "headgate reconciler" && $.failed > 0 }',
      LOG_METRICS.unrepaired,
      '$.failed',
    ),
  };
}

function metricName(suffix: string): Value {
  return sub(`\${AWS::StackName}-${suffix}`);
}

function filter(log: string, pattern: string, name: Value, value: string): Resource {
  return {
    Type: 'AWS::Logs::MetricFilter',
    Properties: {
      LogGroupName: ref(log),
      FilterPattern: pattern,
      MetricTransformations: [{ MetricNamespace: LOG_METRIC_NAMESPACE, MetricName: name, MetricValue: value }],
    },
  };
}
