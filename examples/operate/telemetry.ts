// #region opentelemetry
import { metrics, trace } from '@opentelemetry/api';
import { Limit, RateLimiter } from 'headgate';
import { openTelemetry } from 'headgate/telemetry';

const telemetry = openTelemetry({ meter: metrics.getMeter('headgate'), tracer: trace.getTracer('headgate') });
const limiter = await RateLimiter.open({ limits: [Limit.perMinute('rpm', 60)], onEvent: telemetry.onEvent });
// #endregion opentelemetry
export { limiter };
