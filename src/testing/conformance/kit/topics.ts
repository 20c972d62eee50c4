import type { Case } from './fixture.js';
import { atMost } from '../limit-options/at-most.js';
import { atMostLevels } from '../limit-options/at-most-levels.js';
import { auditLists } from '../records/audit-lists.js';
import { auditRecords } from '../records/audit-records.js';
import { bucketResets } from '../usage/bucket-resets.js';
import { buckets } from '../usage/buckets.js';
import { bypass } from '../limit-options/bypass.js';
import { capacity } from '../usage/capacity.js';
import { cascade } from '../decisions/cascade.js';
import { charges } from '../decisions/charges.js';
import { concurrency } from '../decisions/concurrency.js';
import { configChanges } from '../config/config-changes.js';
import { configShapes } from '../config/config-shapes.js';
import { config } from '../config/config.js';
import { entities } from '../records/entities.js';
import { entityLists } from '../records/entity-lists.js';
import { entityParents } from '../records/entity-parents.js';
import { entityRecords } from '../records/entity-records.js';
import { expiry } from '../decisions/expiry.js';
import { leaseLists } from '../leases/lease-lists.js';
import { leases } from '../leases/leases.js';
import { managed } from '../config/managed.js';
import { many } from '../decisions/many.js';
import { model } from './model.js';
import { names } from './names.js';
import { namespaceDeletion } from '../records/namespace-deletion.js';
import { namespacePurge } from '../records/namespace-purge.js';
import { namespaces } from '../records/namespaces.js';
import { nearness } from '../limit-options/near.js';
import { ownLimits } from '../decisions/own-limits.js';
import { pause } from '../decisions/pause.js';
import { entityPauses } from '../decisions/pause-entities.js';
import { pauses } from '../records/pauses.js';
import { port } from './port.js';
import { portableChanges } from '../leases/portable-changes.js';
import { portableLeases } from '../leases/portable-leases.js';
import { portableLists } from '../leases/portable-lists.js';
import { priority } from '../limit-options/priority.js';
import { priorityTogether } from '../limit-options/priority-together.js';
import { run } from './run.js';
import { shadow } from '../limit-options/shadow.js';
import { slots } from '../decisions/slots.js';
import { status } from '../decisions/status.js';
import { takes } from '../decisions/takes.js';
import { unlimited } from '../limit-options/unlimited.js';
import { usageCounts } from '../usage/usage-counts.js';
import { usageQueries } from '../usage/usage-queries.js';
import { usage } from '../usage/usage.js';
import { waits } from '../decisions/waits.js';

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
  charges,
  pause,
  'pause of entities': entityPauses,
  'pause records': pauses,
  priority,
  'priority of concurrent asks': priorityTogether,
  shadow,
  bypass,
  near: nearness,
  'at most': atMost,
  'at most in cascades': atMostLevels,
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
  'portable leases': [...portableLeases, ...portableChanges, ...portableLists],
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
  'charges',
  'priority',
  'shadow',
  'near',
  'at most',
  'at most in cascades',
  'run',
  'random sequences',
]);
