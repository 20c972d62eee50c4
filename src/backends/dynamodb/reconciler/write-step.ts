import type { Deadline } from '../../../machine-time.js';
import type { RecordWrite, Update } from '../bucket/writes/record-write.js';
import { buildShardWrite } from '../bucket/shard-write.js';
import { buildSettlement, buildSettlementOfAll } from '../bucket/writes/write-settlement.js';
import { buildMerge } from '../bucket/writes/write-split.js';
import { buildHeal, buildUnmark } from '../bucket/writes/write-sweep.js';
import { renderAction, renderUpdate } from '../expressions/dynamodb-executor.js';
import type { ShardImage } from '../table/items.js';
import { type Answer, send, type Table } from '../client/requests.js';
import type { RepairStep } from './plan.js';

/**
 * Sends one step, once. If its answer is lost, the bucket is read and planned again, which is safe:
 * - reclaim requires `h = :seen` of every holder that it removes: if it landed, the holders are removed and it cannot
 * land again;
 * - heal, merge and unmark require `w = :seen` and change `w`;
 * - settle and level require `rf = :rf` and move `rf`.
 * None of them creates a missing item, so a purged bucket stays deleted.
 */
export async function writeStep(
  table: Table,
  ns: string,
  shards: readonly ShardImage[],
  step: RepairStep,
  writeId: string,
  deadline: Deadline,
): Promise<Answer<'UpdateItem'> | Answer<'TransactWriteItems'>> {
  const ids = { own: writeId, unanswered: [] };
  const update = async (write: Update) => send(table, 'UpdateItem', renderUpdate(table.name, write), deadline);
  const updateAll = async (writes: readonly RecordWrite[]) => {
    const TransactItems = writes.map((write) => renderAction(table.name, write));
    return send(table, 'TransactWriteItems', { TransactItems }, deadline);
  };
  switch (step.kind) {
    case 'reclaim':
      return update(buildShardWrite(ns, step.image, step.move, ids));
    case 'settle':
      // Shards of a split bucket have no ttl.
      return update(buildSettlement(ns, step.image, step.settlement, step.version, null, ids));
    case 'unmark':
      return update(buildUnmark(ns, step.image, step.settlement, ids));
    case 'heal':
      return update(buildHeal(ns, step.correction, ids));
    case 'heal-all':
      return updateAll(
        buildSettlementOfAll(ns, shards, step.whole, (image) => ({
          own: writeIdOn(step, writeId, image),
          unanswered: [],
        })),
      );
    case 'merge':
      return updateAll(buildMerge(ns, step.stays, step.leaves, step.merge, writeId));
  }
}

/**
 * The write id that a step leaves on a shard. Each shard has its own, so that a visit knows when each was last used.
 */
export function writeIdOn({ kind }: RepairStep, writeId: string, { key }: ShardImage): string {
  return kind === 'heal-all' ? `${writeId}_${key.shard}` : writeId;
}

/** The shards that a step changes: after it, they have its id, or are deleted. */
export function changedBy(step: RepairStep, shards: readonly ShardImage[]): readonly ShardImage[] {
  switch (step.kind) {
    case 'heal':
      return [step.correction.image];
    case 'heal-all':
      return shards;
    case 'merge':
      return [step.stays, step.leaves];
    case 'reclaim':
    case 'settle':
    case 'unmark':
      return [step.image];
  }
}
