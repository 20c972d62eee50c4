import { AUDIT_PREFIX, STATE } from '../../backends/dynamodb/table/keys.js';
import type { Value } from './intrinsics.js';

/**
 * The changes that the function on the stream has a use for; the rest costs no invocation. Written on the `dynamodb` part
 * of a record alone, and without `exists`: for streams of DynamoDB no other part is promised to be looked at.
 * https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
 */
const STREAM_PATTERNS = {
  /** Every change of a bucket. */
  buckets: { dynamodb: { Keys: { SK: { S: [STATE] } } } },
  /** Audit records are written once: one that has an old image was removed. By whom, the function looks up itself. */
  removedAudits: { dynamodb: { OldImage: { SK: { S: [{ prefix: AUDIT_PREFIX }] } } } },
} as const;

export function streamFilters(): Value {
  return { Filters: Object.values(STREAM_PATTERNS).map((pattern) => ({ Pattern: JSON.stringify(pattern) })) };
}
