import type { Case } from './bench.js';
import { auditLists } from './audit-lists.js';
import { auditRecords } from './audit-records.js';
import { bucketResets } from './bucket-resets.js';
import { buckets } from './buckets.js';
import { capacity } from './capacity.js';
import { cascade } from './cascade.js';
import { concurrency } from './concurrency.js';
import { configChanges } from './config-changes.js';
import { configShapes } from './config-shapes.js';
import { config } from './config.js';
import { entities } from './entities.js';
import { entityLists } from './entity-lists.js';
import { entityParents } from './entity-parents.js';
import { entityRecords } from './entity-records.js';
import { expiry } from './expiry.js';
import { leaseLists } from './lease-lists.js';
import { leases } from './leases.js';
import { managed } from './managed.js';
import { many } from './many.js';
import { model } from './model.js';
import { names } from './names.js';
import { namespaceDeletion } from './namespace-deletion.js';
import { namespacePurge } from './namespace-purge.js';
import { namespaces } from './namespaces.js';
import { ownLimits } from './own-limits.js';
import { port } from './port.js';
import { run } from './run.js';
import { slots } from './slots.js';
import { status } from './status.js';
import { takes } from './takes.js';
import { unlimited } from './unlimited.js';
import { usageCounts } from './usage-counts.js';
import { usageQueries } from './usage-queries.js';
import { usage } from './usage.js';
import { waits } from './waits.js';

/** Every case, by topic. */
export const TOPICS: Readonly<Record<string, readonly Case[]>> = {
  takes,
  names,
  waits,
  leases,
  slots,
  expiry,
  cascade,
  concurrency,
  config,
  'config changes': configChanges,
  'config shapes': configShapes,
  'per-call limits': ownLimits,
  'unlimited limits': unlimited,
  namespaces,
  entities,
  status,
  usage,
  run,
  port,
  'random sequences': model,
  'entity records': entityRecords,
  'entity parents': entityParents,
  'entity lists': entityLists,
  'namespace deletion': namespaceDeletion,
  'namespace purge': namespacePurge,
  'audit records': auditRecords,
  'audit lists': auditLists,
  'usage counts': usageCounts,
  'usage queries': usageQueries,
  buckets,
  'bucket resets': bucketResets,
  capacity,
  'lease lists': leaseLists,
  'managed marks': managed,
  'many at once': many,
};

/** Topics about decisions. Their cases also run with every ask in a group of asks. */
export const DECIDING: ReadonlySet<string> = new Set([
  'takes',
  'waits',
  'leases',
  'slots',
  'expiry',
  'cascade',
  'config changes',
  'per-call limits',
  'unlimited limits',
  'run',
  'random sequences',
]);
