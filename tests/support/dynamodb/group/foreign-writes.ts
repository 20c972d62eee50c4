import { ATTRIBUTE, encodeHolder, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import type { Entry } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import { planSettle } from '../../../../src/backends/dynamodb/bucket/settle/settle.js';
import { RecordUpdate, type Update } from '../../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { buildSettlement } from '../../../../src/backends/dynamodb/bucket/writes/write-settlement.js';
import { type Amount, amountOf, type Holder } from '../../../../src/core/bucket/decide.js';
import { NOW_MS, NS } from '../shard/shard-images.js';

/**
 * What a foreign writer does. `earlier grant`: a write of an earlier group, which got no answer, lands late and grants an
 * ask that this group writes again. `delete`: the record is deleted, as by its ttl.
 */
export type Foreign = 'none' | 'take' | 'refund' | 'rebase' | 'earlier grant' | 'delete';

export interface HeldAsk {
  readonly leaseId: string;
  readonly asks: readonly Amount[];
  readonly holder: Holder;
}

/** An ask that an earlier group may have granted. What could be cut keeps its amount from then on. */
export function findDoubtful(entries: readonly Entry[]): HeldAsk | undefined {
  for (const entry of entries) {
    if (entry.kind !== 'ask' || entry.leaseId === null || entry.level.holder === null) continue;
    const { asks, holder } = entry.level;
    if (!asks.some(({ atMost }) => atMost === true)) return { leaseId: entry.leaseId, asks, holder };
  }
  return undefined;
}

/** null: there is nothing to write. */
export function foreignWrite(
  image: ShardImage,
  kind: Exclude<Foreign, 'delete'>,
  doubtful: HeldAsk | undefined,
  at: number,
): Update | null {
  switch (kind) {
    case 'none':
      return null;
    case 'rebase':
      return rebaseOf(image, at);
    case 'earlier grant':
      return doubtful === undefined || image.holders.has(doubtful.leaseId) ? null : earlierGrant(image, doubtful, at);
    case 'take':
    case 'refund':
      return foreignChange(image, kind, at);
  }
}

function earlierGrant({ key, limits }: ShardImage, { leaseId, asks, holder }: HeldAsk, at: number): Update {
  const update = new RecordUpdate()
    .set(ATTRIBUTE.writeId, `foreign-write-${at}`)
    .set(ATTRIBUTE.holder(leaseId), encodeHolder(holder))
    .add(ATTRIBUTE.acquires, 1);
  for (const { limit } of limits) {
    const milli = Number(amountOf(asks, limit.name) ?? 0);
    if (limit.kind !== 'unlimited') update.add(ATTRIBUTE.tokens(limit.name), -milli);
    if (limit.kind !== 'concurrent') update.add(ATTRIBUTE.consumed(limit.name), milli);
  }
  return update.of(NS, key);
}

/** Another process takes a tenth of each rate, if it is there, or gives it back. */
function foreignChange({ key, limits }: ShardImage, kind: 'take' | 'refund', at: number): Update {
  const update = new RecordUpdate().set(ATTRIBUTE.writeId, `foreign-write-${at}`);
  for (const { limit, tokensMilli } of limits) {
    const part = Math.floor(limit.capacityMilli / 10);
    if (limit.kind !== 'rate' || (kind === 'take' && tokensMilli < part)) continue;
    const milli = kind === 'take' ? part : -part;
    update.add(ATTRIBUTE.tokens(limit.name), -milli).add(ATTRIBUTE.consumed(limit.name), milli);
  }
  return update.of(NS, key);
}

function rebaseOf(image: ShardImage, at: number): Update {
  const settlement = planSettle(image, { limits: image.limits.map(({ limit }) => limit) }, NOW_MS);
  const ids = { own: `foreign-write-${at}`, unanswered: [] };
  return buildSettlement(NS, image, settlement, image.version, image.ttlSec, ids);
}
