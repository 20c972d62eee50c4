import type { Call, ChargeLevels, ChargeOutcome, ChargeReceipt, LevelCharge } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { changesBy } from '../../../core/bucket/holder-rules.js';
import { receiptEnd } from '../../../core/bucket/receipt.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { add } from '../../../core/int.js';
import { MAX_WRITES_AT_ONCE } from '../bucket/executor.js';
import type { ChangeEntry } from '../bucket/group/entries.js';
import { createWriteId, type RecordWrite } from '../bucket/writes/record-write.js';
import { backOffMs, type Deadline, deadlineIn, sleep, timeLeftMs } from '../../../machine-time.js';
import { readShards } from './bucket-images.js';
import { divideCharge, imagesOf, isCredit } from './divide-charge.js';
import { type BucketCache, type BucketShards, tuningOf } from './bucket-shards.js';
import type { Shard } from './shard.js';
import { planInTransaction } from './transaction-write.js';

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
  // What a full shard gets of a credit is lost: the room of each must be known.
  if (bucket.count > 1 && isCredit(level)) await readShards(bucket, call.nowMs, deadline, 0);
  const shards = Array.from({ length: bucket.count }, (_, number) => bucket.shard(number));
  const parts = divideCharge(level, imagesOf(shards), call.nowMs);
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
    level: { ...ref, amounts: changesBy(deltas), holder: 'none' },
    leaseId: buildLeaseId(nowMs, random()),
    nowMs,
    uncounts: false,
  };
}

/** The receipt is one of the writes. */
const MAX_PARTS = MAX_WRITES_AT_ONCE - 1;

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
    const writes = parts.map(({ level, shard }) =>
      planInTransaction(call, shard, changeEntry(call, level, executor.random), writeId),
    );
    // Another call of this process changed one of the shards since the dry run: `answer` then stays null.
    const isStale = writes.some(({ kind }) => kind === 'changed');
    const answer = isStale
      ? null
      : await executor.writeAll(
          // A shard that has none of the limits needs no write.
          [receiptWrite(call, receipt), ...writes.flatMap((one) => (one.kind === 'write' ? [one.write] : []))],
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
    await sleep(waitMs);
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
    const shards = await Promise.all(
      Array.from({ length: Math.min(bucket.count, most) }, async (_, number) =>
        number === 0 ? first : (await look(call, level, bucket, number, deadline)).shard,
      ),
    );
    return join(divideCharge(level, imagesOf(shards), call.nowMs), shards);
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
