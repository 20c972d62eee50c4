import type { LevelRef } from '../../../backend.js';
import { compareVersions } from '../../../core/config/config.js';
import type { EpochMs } from '../../../core/units.js';
import type { Executor } from '../bucket/executor.js';
import { planSettle } from '../bucket/settle/settle.js';
import { changesSlots, hasRightSlots, isWhole, newestRules, planSettleAll } from '../bucket/settle/settle-all.js';
import { createWriteId, type WriteIds } from '../bucket/writes/record-write.js';
import { buildSettlement, buildSettlementOfAll } from '../bucket/writes/write-settlement.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../machine-time.js';
import type { ShardImage } from '../table/items.js';

/** After these attempts every shard is settled alone, and the reconciler adds the slots that are missing. */
const MAX_ATTEMPTS = 4;

interface SettleShardsOptions {
  readonly executor: Executor;
  readonly level: LevelRef;
  readonly nowMs: EpochMs;
  readonly deadline: Deadline;
}

/**
 * Settles all shards of a bucket to new rules in one transaction, so that no slot is missing in between. False: it was
 * not possible, for example because other writers are too frequent or a shard cannot be read.
 */
export async function settleShards(options: SettleShardsOptions): Promise<boolean> {
  const { executor, level, nowMs, deadline } = options;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const waitMs = attempt === 0 ? 0 : backOffMs(attempt, executor.random);
    if (timeLeftMs(deadline) <= waitMs) return false;
    if (waitMs > 0) await sleep(waitMs);
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
    const writes = buildSettlementOfAll(executor.ns, shards, whole, () => freshIds(options));
    const answer = await executor.writeAll(writes, deadline);
    if (answer.kind === 'written') return true;
    if (answer.kind === 'failed') return false;
  }
  return false;
}

function freshIds({ executor, nowMs }: SettleShardsOptions): WriteIds {
  return { own: createWriteId(nowMs, executor.random), unanswered: [] };
}

async function readShards({ executor, level, deadline }: SettleShardsOptions): Promise<readonly ShardImage[]> {
  const [shards = []] = await executor.readBuckets([level], deadline);
  return shards;
}

/** Settles shards one by one, which frees no slots. Refused writes are left to the next attempt. */
async function settleEach(options: SettleShardsOptions, shards: readonly ShardImage[]): Promise<boolean> {
  const { executor, level, nowMs, deadline } = options;
  const rules = newestRules(shards, level) ?? level;
  const due = shards.filter((image) => changesSlots(image, rules));
  const writes = due.map((image) => {
    const settlement = planSettle(image, rules, nowMs);
    return buildSettlement(executor.ns, image, settlement, rules.version, null, freshIds(options));
  });
  await Promise.all(
    due.map(async ({ key }, at) => {
      const write = writes[at];
      if (write !== undefined) await executor.write(key, write, rules.limits, deadline);
    }),
  );
  return due.length > 0;
}
