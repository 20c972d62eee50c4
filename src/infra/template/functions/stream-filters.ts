import { AUDIT_PREFIX, STATE } from '../../../backends/dynamodb/table/keys.js';
import type { Value } from '../intrinsics.js';

/**
 * The changes that the stream function processes; others cost no invocation. The patterns use only the `dynamodb` part
 * of a record and no `exists`: Lambda documents no other part for DynamoDB streams.
 * https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
 */
const STREAM_PATTERNS = {
  /** Every change of a bucket. */
  buckets: { dynamodb: { Keys: { SK: { S: [STATE] } } } },
  /** Audit records are written once, so one with an old image was removed. The function checks who removed it. */
  removedAudits: { dynamodb: { OldImage: { SK: { S: [{ prefix: AUDIT_PREFIX }] } } } },
} as const;

export function streamFilters(): Value {
  return { Filters: Object.values(STREAM_PATTERNS).map((pattern) => ({ Pattern: JSON.stringify(pattern) })) };
}
