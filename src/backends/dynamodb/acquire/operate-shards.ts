import type { Call, LevelOperation, OperationResult } from '../../../backend.js';
import type { PortablePart } from '../../../core/bucket/portable.js';
import { joinParts } from '../../../core/bucket/portable-parts.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../machine-time.js';
import type { EntryResult } from '../bucket/group/entries.js';
import { type GroupPlan, planGroup } from '../bucket/group/plan-group.js';
import type { Trust } from '../bucket/group/group-draft.js';
import { buildShardWrite } from '../bucket/shard-write.js';
import { createWriteId, type RecordWrite } from '../bucket/writes/record-write.js';
import type { ShardImage } from '../table/items.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';
import type { Shard } from './shard.js';

/** A shard that the lease was taken from, and its part of the operation. */
export interface OperationPart {
  readonly shard: number;
  readonly level: LevelOperation;
}

interface OperatingAll {
  readonly call: Call;
  readonly bucket: BucketShards;
  readonly leaseId: string;
  readonly parts: readonly OperationPart[];
  readonly deadline: Deadline;
}

interface Held {
  readonly level: LevelOperation;
  readonly shard: Shard;
  readonly image: ShardImage;
}

/**
 * Makes an operation of a portable lease on several shards of a bucket, in one transaction: written one after the other, a
 * process that stops in between would leave parts for a contradictory operation of another process to divide differently.
 * null: a holder is missing on one of the shards, so that nothing but a charge can be due.
 */
export async function operateAll(operating: OperatingAll): Promise<OperationResult | null> {
  const { bucket, deadline } = operating;
  const { executor } = bucket;
  for (let attempt = 0; ; attempt++) {
    const held = await readHeld(operating);
    if (held === null) return null;
    const plans = held.map((one) => planOn(operating, one, 'exact'));
    const unready = held.filter((_, at) => plans[at]?.kind === 'settle' || plans[at]?.kind === 'rebase');
    if (unready.length > 0) {
      await Promise.all(unready.map(async (one) => prepare(operating, one)));
      continue;
    }
    const result = resultOf(plans);
    // Where it is done already, the images that were read are the proof.
    if (result.kind === 'closed' || plans.every(({ kind }) => kind === 'answer')) return result;
    const writes = held.map((one) => writeOn(operating, one)).filter((write) => write !== null);
    for (const { shard } of held) shard.forget();
    const answer = await executor.writeAll(writes, deadline);
    // A transaction returns no images, so the cached ones are stale.
    for (const { shard } of held) shard.forget();
    if (answer.kind === 'written') return result;
    if (answer.kind === 'failed') throw answer.error;
    // A lost answer needs no rule of its own: the holders show whether the transaction was written.
    const waitMs = backOffMs(attempt, executor.random);
    if (timeLeftMs(deadline) <= waitMs) {
      throw 'error' in answer
        ? answer.error
        : new BackendUnavailable('Changing a lease: other writers won every attempt', 'contended');
    }
    await sleep(waitMs);
  }
}

async function readHeld({ call, bucket, leaseId, parts, deadline }: OperatingAll): Promise<readonly Held[] | null> {
  const read = await Promise.all(parts.map(async ({ shard }) => bucket.read(shard, call.nowMs, deadline)));
  const held: Held[] = [];
  for (const [at, { shard, image }] of read.entries()) {
    const level = parts[at]?.level;
    // A shard with holders is never merged: two parts on one shard have lost theirs.
    if (level === undefined || image?.holders.has(leaseId) !== true || image.key.shard !== parts[at]?.shard)
      return null;
    held.push({ level, shard, image });
  }
  return held;
}

function planOn({ call, leaseId }: OperatingAll, { level, image }: Held, trust: Trust): GroupPlan {
  const { nowMs } = call;
  const lifeFactor = tuningOf(call).bucketLifeFactor;
  const entry = { kind: 'operation', level, leaseId, nowMs } as const;
  return planGroup(image, [entry], { nowMs, trust, lifeFactor, withoutRefunds: false });
}

/** As on an image that may be old: the transaction then requires the holder also where nothing of it changes. */
function writeOn(operating: OperatingAll, held: Held): RecordWrite | null {
  const plan = planOn(operating, held, 'guess');
  if (plan.kind !== 'write') return null;
  const { executor } = operating.bucket;
  const ids = { own: createWriteId(operating.call.nowMs, executor.random), unanswered: [] };
  return buildShardWrite(executor.ns, held.image, plan.write, ids);
}

function resultOf(plans: readonly GroupPlan[]): OperationResult {
  const results = plans.flatMap((plan): EntryResult[] =>
    plan.kind === 'write' || plan.kind === 'answer' ? [plan.results[0]].filter((one) => one != null) : [],
  );
  const parts: PortablePart[] = [];
  for (const result of results) {
    if ('part' in result && result.part !== null) parts.push(result.part);
  }
  const part = parts.reduce(joinParts);
  const ended = results.find((result) => result.kind === 'ended');
  return ended === undefined ? { kind: 'done', part } : { kind: 'closed', state: ended.state, part };
}

/** An ask for nothing, as a dry run, settles the shard to newer rules, or moves its base. */
async function prepare({ call, bucket, deadline }: OperatingAll, { level, shard }: Held): Promise<void> {
  const { entityId, resource, limits, version } = level;
  const ask = { entityId, resource, limits, version, asks: [], holder: null };
  const entry = { kind: 'ask', level: ask, leaseId: null, nowMs: call.nowMs, counts: false, dryRun: true } as const;
  await bucket.submit(shard.number, entry, deadline, tuningOf(call));
}
