import { ref, type Resource, type Resources, substitute, type Value } from '../intrinsics.js';
import { RESOURCES } from '../names.js';

/** Metrics that only the logs can provide. Their names include the stack: a region may have several stacks. */
export const LOG_METRICS = {
  skipped: metricName('skipped'),
  unrepaired: metricName('unrepaired'),
} as const;

export const LOG_METRIC_NAMESPACE = 'Headgate';

/** CloudWatch creates a metric with the first line that matches, so an unused metric costs nothing. */
export function logMetrics(): Resources {
  return {
    SkippedFilter: filter(
      RESOURCES.streamLog,
      '{ $.message = "headgate stream: a record was skipped" }',
      LOG_METRICS.skipped,
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
  return substitute(`\${AWS::StackName}-${suffix}`);
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
