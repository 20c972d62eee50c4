import type { Call, ChargeLevels, ChargeOutcome, ChargeReceipt, LevelCharge } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { receiptEnd } from '../../../core/bucket/receipt.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { add, type Int, toInt } from '../../../core/int.js';
import type { ChangeEntry } from '../bucket/group/entries.js';
import { planGroup } from '../bucket/group/plan-group.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import { applyShardWrite, buildShardWrite } from '../bucket/shard-write.js';
import { buildCreate } from '../bucket/writes/create.js';
import { createWriteId, type RecordWrite } from '../bucket/writes/record-write.js';
import { backOffMs, type Deadline, deadlineIn, pause, timeLeftMs } from '../../../machine-time.js';
import { type BucketCache, type BucketShards, tuningOf } from './bucket-shards.js';
import type { Shard } from './shard.js';

interface Charging {
  readonly call: Call;
  readonly deadline: Deadline;
  readonly levels: readonly { readonly level: LevelCharge; readonly bucket: BucketShards }[];
}

/** The part of a charge that one shard gets. */
interface Part {
  readonly level: LevelCharge;
  readonly shard: Shard;
}

/** Charges all levels. Without a receipt each shard is one write, which it shares with other calls. */
export async function charge(
  buckets: BucketCache,
  call: Call,
  { levels, receipt }: ChargeLevels,
): Promise<ChargeOutcome> {
  const charging: Charging = {
    call,
    deadline: deadlineIn(call.timeoutMs),
    levels: levels.map((level) => ({ level, bucket: buckets.of(call.namespaceId, level.entityId, level.resource) })),
  };
  if (receipt !== null) return chargeOnce(charging, receipt);
  const results = await Promise.allSettled(charging.levels.map(async (one) => chargeLevel(charging, one)));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return { kind: 'charged' };
}

async function chargeLevel({ call, deadline }: Charging, { level, bucket }: Charging['levels'][number]): Promise<void> {
  // Without an image it is not known how many shards share the charge.
  if (bucket.shard(0).image === null) await bucket.read(0, call.nowMs, deadline);
  const parts = divide(level, bucket.count);
  const writes = parts.map(async (part, number) =>
    part.deltas.length === 0
      ? null
      : bucket.submit(number, changeEntry(call, part, bucket.executor.random), deadline, tuningOf(call)),
  );
  const results = await Promise.allSettled(writes);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

function changeEntry({ nowMs }: Call, level: LevelCharge, random: () => number): ChangeEntry {
  const { deltas, ...ref } = level;
  return {
    kind: 'change',
    level: { ...ref, kind: 'deltas', deltas, holder: 'none' },
    leaseId: buildLeaseId(nowMs, random()),
    nowMs,
    uncounts: false,
  };
}

/**
 * Every shard gets the same part: otherwise one shard would be deep in debt while the others grant as before. The parts up
 * to each shard are rounded, not the parts themselves, so that they add up to the whole.
 */
function divide(level: LevelCharge, count: number): readonly LevelCharge[] {
  if (count === 1) return [level];
  return Array.from({ length: count }, (_, at) => {
    const deltas = level.deltas.map(({ name, milli }) => ({ name, milli: partAt(milli, at, count) }));
    return { ...level, deltas: deltas.filter(({ milli }) => milli !== 0) };
  });
}

function partAt(milli: Int, at: number, count: number): Int {
  const upTo = (end: number): bigint => (BigInt(milli) * BigInt(end)) / BigInt(count);
  return toInt(upTo(at + 1) - upTo(at));
}

/** DynamoDB's limit for the actions of one transaction, less the receipt. */
const MAX_PARTS = 99;

/**
 * Writes all levels and the receipt in one transaction. A receipt that exists refuses it, so that it may be sent again
 * after a lost answer, by this call or by a later one, on whatever shards.
 */
async function chargeOnce(charging: Charging, receipt: ChargeReceipt): Promise<ChargeOutcome> {
  const { call, deadline, levels } = charging;
  const { executor } = (levels[0] as Charging['levels'][number]).bucket;
  for (let attempt = 0; ; attempt++) {
    const parts = await dryRun(charging);
    const writeId = createWriteId(call.nowMs, executor.random);
    const writes = parts.map((part) => writeOf(call, part, writeId));
    // Another call of this process changed one of the shards since the dry run: `answer` then stays null.
    const isStale = writes.includes('changed');
    const answer = isStale
      ? null
      : await executor.writeAll(
          [receiptWrite(call, receipt), ...writes.filter((write) => write !== null && write !== 'changed')],
          deadline,
        );
    // A transaction returns no images, so the cached ones are stale.
    for (const { shard } of parts) shard.forget();
    if (answer?.kind === 'written') return { kind: 'charged' };
    if (answer?.kind === 'failed') throw answer.error;
    if (answer !== null) {
      const content = await executor.readReceipt(receipt, call.nowMs, deadline);
      if (content !== null) return { kind: content === receipt.content ? 'repeated' : 'id-used' };
    }
    const waitMs = backOffMs(attempt, executor.random);
    if (timeLeftMs(deadline) <= waitMs) throw outOfTime(answer);
    await pause(waitMs);
  }
}

function receiptWrite({ namespaceId: ns, nowMs }: Call, receipt: ChargeReceipt): RecordWrite {
  return { kind: 'receipt', ns, receipt, endMs: receiptEnd(nowMs), nowMs };
}

function outOfTime(answer: { readonly kind: string; readonly error?: unknown } | null): unknown {
  if (answer?.error !== undefined) return answer.error;
  return new BackendUnavailable('Other writers won every attempt to charge: the charge can be repeated', 'contended');
}

/** Settles and rebases the shards where needed, and reads images that the plan can treat as exact. */
async function dryRun({ call, deadline, levels }: Charging): Promise<readonly Part[]> {
  const most = Math.floor(MAX_PARTS / levels.length);
  const ofLevels = levels.map(async ({ level, bucket }) => {
    const { shard: first } = await look(call, level, bucket, 0, deadline);
    const divided = divide(level, Math.min(bucket.count, most));
    const shards = divided.map(async (_, number) =>
      number === 0 ? first : (await look(call, level, bucket, number, deadline)).shard,
    );
    return join(divided, await Promise.all(shards));
  });
  return (await Promise.all(ofLevels)).flat();
}

/** Asks for nothing, as a dry run. */
async function look(call: Call, level: LevelCharge, bucket: BucketShards, number: number, deadline: Deadline) {
  const { deltas: _, ...ref } = level;
  const ask = { ...ref, asks: [], holder: null };
  const entry = { kind: 'ask', level: ask, leaseId: null, nowMs: call.nowMs, counts: false, dryRun: true } as const;
  return bucket.submit(number, entry, deadline, tuningOf(call));
}

/** One part for each shard that exists: a shard that is not split off yet belongs to its parent. */
function join(divided: readonly LevelCharge[], shards: readonly Shard[]): readonly Part[] {
  const parts = new Map<Shard, LevelCharge>();
  for (const [at, shard] of shards.entries()) {
    const level = divided[at] as LevelCharge;
    const before = parts.get(shard);
    parts.set(shard, before === undefined ? level : { ...level, deltas: sum(before.deltas, level.deltas) });
  }
  return [...parts].map(([shard, level]) => ({ shard, level }));
}

function sum(a: readonly Amount[], b: readonly Amount[]): readonly Amount[] {
  const all = new Map(a.map(({ name, milli }) => [name, milli]));
  for (const { name, milli } of b) all.set(name, add(all.get(name) ?? 0, milli));
  return [...all].map(([name, milli]) => ({ name, milli }));
}

/** null: the shard has none of the limits. */
function writeOf(call: Call, { level, shard }: Part, writeId: string): RecordWrite | null | 'changed' {
  const { namespaceId: ns, nowMs } = call;
  // Only shard 0 is ever created. Any other shard that is absent was merged after the dry run.
  if (shard.image === null && shard.number > 0) return 'changed';
  const image = shard.image ?? newBucketImage(shard.key, level, nowMs);
  const lifeFactor = tuningOf(call).bucketLifeFactor;
  const entry = changeEntry(call, level, shard.executor.random);
  const plan = planGroup(image, [entry], { nowMs, trust: 'exact', lifeFactor, withoutRefunds: false });
  if (plan.kind === 'answer') return null;
  if (plan.kind !== 'write') return 'changed';
  if (shard.image !== null) return buildShardWrite(ns, image, plan.write, { own: writeId, unanswered: [] });
  return buildCreate(ns, { ...applyShardWrite(image, plan.write, writeId), writeUnits: 2 });
}
