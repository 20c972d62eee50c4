export { LimiterMetrics } from './limiter-metrics.js';
export { openTelemetry, type OpenTelemetryListener, type OpenTelemetryOptions } from './opentelemetry.js';
