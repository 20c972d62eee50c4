import type { LevelRef } from '../../../backend.js';
import { compareVersions } from '../../../core/config/config.js';
import type { EpochMs } from '../../../core/units.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import type { Target, WriteIds } from '../bucket/writes/shard-update.js';
import { buildSettlement, buildSettlementOfAll } from '../bucket/writes/write-settlement.js';
import type { ShardImage } from '../table/items.js';
import { readBuckets } from './peek.js';
import { send, type Table } from '../client/requests.js';
import { changesSlots, hasRightSlots, isWhole, newestRules, planSettleAll } from '../bucket/settle-all.js';
import { planSettle } from '../bucket/settle.js';

/** After these attempts every shard is settled alone, and the reconciler adds the slots that are missing. */
const MAX_ATTEMPTS = 4;

interface SettleShardsOptions {
  readonly table: Table;
  readonly target: Target;
  readonly level: LevelRef;
  readonly nowMs: EpochMs;
  readonly deadline: Deadline;
  readonly createIds: () => WriteIds;
}

/**
 * Settles all shards of a bucket to new rules in one transaction, so that no slot is missing in between. False: it was
 * not possible, for example because other writers are too frequent or a shard cannot be read.
 */
export async function settleShards(options: SettleShardsOptions): Promise<boolean> {
  const { table, target, level, nowMs, deadline, createIds } = options;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const waitMs = attempt === 0 ? 0 : backOffMs(attempt, table.random);
    if (timeLeftMs(deadline) <= waitMs) return false;
    if (waitMs > 0) await pause(waitMs);
    let shards = await readShards(options);
    // On a busy bucket every write takes or releases slots, which breaks the conditions on limits that start or are
    // cut. After the shards are settled one by one, those conditions are no longer needed.
    if (attempt > 0 && (await settleEach(options, shards))) shards = await readShards(options);
    if (!isWhole(shards)) continue;
    const rules = newestRules(shards, level) ?? level;
    // Another process has settled the bucket.
    if (shards.every(({ version }) => compareVersions(version, rules.version) === 0) && hasRightSlots(shards, rules)) {
      return true;
    }
    const whole = planSettleAll(shards, rules, nowMs);
    const input = buildSettlementOfAll(target, shards, whole, createIds);
    const answer = await send(table, 'TransactWriteItems', input, deadline);
    if (answer.ok) return true;
    if (answer.failure.kind === 'fatal' || answer.failure.kind === 'unreached') return false;
  }
  return false;
}

async function readShards({ table, target, level, deadline }: SettleShardsOptions): Promise<readonly ShardImage[]> {
  const [shards = []] = await readBuckets(table, target.ns, [level], deadline);
  return shards;
}

/** Settles shards one by one, which frees no slots. Refused writes are left to the next attempt. */
async function settleEach(options: SettleShardsOptions, shards: readonly ShardImage[]): Promise<boolean> {
  const { table, target, level, nowMs, deadline, createIds } = options;
  const rules = newestRules(shards, level) ?? level;
  const writes = shards.flatMap((image) => {
    if (!changesSlots(image, rules)) return [];
    return [buildSettlement(target, image, planSettle(image, rules, nowMs), rules.version, null, createIds())];
  });
  await Promise.all(writes.map(async (input) => send(table, 'UpdateItem', input, deadline)));
  return writes.length > 0;
}
