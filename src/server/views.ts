import * as v from 'valibot';
import type { LimitStatus } from '../core/bucket/decide.js';
import { finite, limitView, viewLimit } from './schemas.js';

/** The state of one limit of one level. */
export const statusView = v.object({
  entityId: v.string(),
  resource: v.string(),
  limit: limitView,
  available: v.pipe(v.nullable(v.number()), v.description('What is left after the decision; negative in debt.')),
  requested: v.number(),
  exceeded: v.boolean(),
  retryAfterMs: v.pipe(v.nullable(v.number()), v.description('0 if not exceeded; null if waiting does not help.')),
});

export function viewStatus(status: LimitStatus): v.InferOutput<typeof statusView> {
  const { entityId, resource, requested, exceeded, retryAfterMs } = status;
  const available = finite(status.available);
  return { entityId, resource, limit: viewLimit(status.limit), available, requested, exceeded, retryAfterMs };
}
