import type { LevelRef } from '../../../backend.js';
import { compareVersions } from '../../../core/config/config.js';
import type { EpochMs } from '../../../core/units.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import type { Target, WriteIds } from '../bucket/expressions/shard-update.js';
import { buildSettlement, buildSettlementOfAll } from '../bucket/expressions/write-settlement.js';
import type { ShardImage } from '../table/items.js';
import { readBuckets } from './peek.js';
import { send, type Table } from '../client/requests.js';
import { changesSlots, hasRightSlots, isWhole, newestRules, planSettleAll } from '../bucket/settle-all.js';
import { planSettle } from '../bucket/settle.js';

/** After these, every shard is settled alone, and the reconciler adds the slots that are missing. */
const MAX_ATTEMPTS = 4;

interface Settling {
  readonly table: Table;
  readonly target: Target;
  readonly level: LevelRef;
  readonly nowMs: EpochMs;
  readonly deadline: Deadline;
  readonly createIds: () => WriteIds;
}

/**
 * Brings all shards of a bucket to new rules in one transaction, so that no slot is missing in between.
 * False: it was not possible, for example because others write too often or some shard cannot be read.
 */
export async function settleShards(settling: Settling): Promise<boolean> {
  const { table, target, level, nowMs, deadline, createIds } = settling;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const waitMs = attempt === 0 ? 0 : backOffMs(attempt, table.random);
    if (timeLeftMs(deadline) <= waitMs) return false;
    if (waitMs > 0) await pause(waitMs);
    let shards = await readShards(settling);
    // On a busy bucket slots come and go with every write. Once they have started, or were cut, that does not matter.
    if (attempt > 0 && (await settleEach(settling, shards))) shards = await readShards(settling);
    if (!isWhole(shards)) continue;
    const rules = newestRules(shards, level) ?? level;
    // Another process was faster.
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

async function readShards({ table, target, level, deadline }: Settling): Promise<readonly ShardImage[]> {
  const [shards = []] = await readBuckets(table, target.ns, [level], deadline);
  return shards;
}

/** Settles shards one by one, which frees no slots; what is refused is left to the next attempt. */
async function settleEach(settling: Settling, shards: readonly ShardImage[]): Promise<boolean> {
  const { table, target, level, nowMs, deadline, createIds } = settling;
  const rules = newestRules(shards, level) ?? level;
  const writes = shards.flatMap((image) => {
    if (!changesSlots(image, rules)) return [];
    return [buildSettlement(target, image, planSettle(image, rules, nowMs), rules.version, null, createIds())];
  });
  await Promise.all(writes.map(async (input) => send(table, 'UpdateItem', input, deadline)));
  return writes.length > 0;
}
