import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Call, LevelAsk } from '../../../backend.js';
import { sub, toInt } from '../../../core/int.js';
import { isConsumed } from '../../../core/limit.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import type { BucketShards } from './bucket-shards.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import type { AskEntry } from '../bucket/entries.js';
import { buildCreate } from '../bucket/expressions/create.js';
import { keyOf } from '../bucket/expressions/shard-update.js';
import { shardWriteExpression } from '../bucket/expressions/write-shard.js';
import { errorOf } from '../client/failures.js';
import { createWriteId } from '../bucket/write-id.js';
import { planGroup } from '../bucket/plan-group.js';
import { applyShardWrite } from '../bucket/shard-write.js';
import { readLocation } from '../bucket/grant-location.js';
import { send, type Table } from '../client/requests.js';
import { revocationOfGrant } from '../bucket/revocation.js';
import type { ShardLine } from './shard-line.js';
import { type LevelOutcome, partialAsk, takeLevel } from './take-level.js';
import { tuningOf } from '../bucket/tuning.js';

interface AtomicAsking {
  readonly table: Table;
  readonly call: Call;
  readonly leaseId: string | null;
  readonly deadline: Deadline;
  readonly levels: readonly { readonly level: LevelAsk; readonly bucket: BucketShards }[];
}

/** One shard that a level is taken from, and how much of the ask. */
interface Part {
  readonly bucket: BucketShards;
  readonly line: ShardLine;
  readonly level: LevelAsk;
  /** Whether it is a grant of its own, and not a further part of one. */
  readonly counts: boolean;
}

/** DynamoDB's limit for one transaction. */
const MAX_ITEMS = 100;

/**
 * Takes from all levels in one transaction: not even a crash leaves one without the others. Each level is first brought
 * to where it could be taken from, by the rules of any other ask: from one shard, or from several. Then all are written,
 * each under its own conditions, or none. Gives one outcome per level, up to the first that is not granted.
 */
export async function takeAtomically(asking: AtomicAsking): Promise<readonly LevelOutcome[]> {
  const doubts: (() => void)[] = [];
  let isGranted = false;
  try {
    const outcomes = await takeInTransaction(asking, doubts);
    isGranted = outcomes.length === asking.levels.length && outcomes.every(({ kind }) => kind === 'granted');
    return outcomes;
  } finally {
    // A transaction that got no answer may have been made all the same, or may still be.
    if (!isGranted) for (const revoke of doubts) revoke();
  }
}

async function takeInTransaction(asking: AtomicAsking, doubts: (() => void)[]): Promise<readonly LevelOutcome[]> {
  const { table, call, deadline } = asking;
  const { maxRetries } = tuningOf(call);
  for (let attempt = 0; ; attempt++) {
    const outcomes = await lookAtLevels(asking);
    if (outcomes.length < asking.levels.length || outcomes.some(({ kind }) => kind !== 'granted')) return outcomes;
    const parts = outcomes.flatMap((outcome, at) => partsOf(asking.levels[at], outcome));
    // Its shards are too many for one transaction, until some of them merge.
    if (parts.length > MAX_ITEMS) return [{ kind: 'contended' }];
    const writeId = createWriteId(call.nowMs, table.random);
    const actions = parts.map((part) => actionOf(asking, part, writeId));
    if (actions.includes('id-taken')) return [{ kind: 'id-taken' }];
    // Another caller of this process was faster on one of the lines.
    if (actions.includes('changed')) {
      if (attempt >= maxRetries) return [{ kind: 'contended' }];
      continue;
    }
    const TransactItems = actions as TransactWriteItem[];
    const revocations = parts.flatMap((part) => revocationIn(asking, part));
    const answer = await send(table, 'TransactWriteItems', { TransactItems }, deadline);
    if (!answer.ok && answer.failure.kind === 'lost') doubts.push(...revocations);
    // A transaction shows no images: what was remembered is no longer so.
    for (const { line } of parts) line.forget();
    if (answer.ok || (answer.failure.kind === 'lost' && (await hasLanded(parts, writeId, asking)))) return outcomes;
    const { kind } = answer.failure;
    if (kind !== 'cancelled' && kind !== 'conflict' && kind !== 'throttled' && kind !== 'lost') {
      throw errorOf(answer.failure, 'TransactWriteItems');
    }
    const waitMs = backOffMs(attempt, table.random);
    if (attempt >= maxRetries || timeLeftMs(deadline) <= waitMs) {
      // Others were faster each time; anything else is for the outage policy.
      if (kind === 'cancelled' || kind === 'conflict') return [{ kind: 'contended' }];
      throw errorOf(answer.failure, 'TransactWriteItems');
    }
    await pause(waitMs);
  }
}

/** Settled, without expired holders in the way, and with images that the store has just shown. */
async function lookAtLevels({ call, leaseId, deadline, levels }: AtomicAsking): Promise<readonly LevelOutcome[]> {
  const outcomes: LevelOutcome[] = [];
  for (const { level, bucket } of levels) {
    const outcome = await takeLevel({ call, bucket, level, leaseId, deadline, looksOnly: true });
    outcomes.push(outcome);
    if (outcome.kind !== 'granted') break;
  }
  return outcomes;
}

function partsOf(asked: AtomicAsking['levels'][number] | undefined, outcome: LevelOutcome): readonly Part[] {
  if (asked === undefined || outcome.kind !== 'granted') return [];
  const { level, bucket } = asked;
  const places = readLocation(outcome.answer.place);
  return places.map(({ shard, taken }, at) => {
    const asks = taken.map(({ name, milli }) => ({ name, milli: toInt(BigInt(milli)) }));
    return {
      bucket,
      line: bucket.line(shard),
      level: places.length === 1 ? level : partialAsk(level, asks),
      counts: at === 0,
    };
  });
}

function actionOf(
  { table, call, leaseId }: AtomicAsking,
  { level, line, counts }: Part,
  writeId: string,
): TransactWriteItem | 'id-taken' | 'changed' {
  const { namespaceId: ns, nowMs } = call;
  const key = { entityId: level.entityId, resource: level.resource, shard: line.shard };
  const image = line.image ?? newBucketImage(key, level, nowMs);
  const lifeFactor = tuningOf(call).bucketLifeFactor;
  const entry: AskEntry = { kind: 'ask', level, leaseId, nowMs, counts };
  const plan = planGroup(image, [entry], { nowMs, trust: 'exact', lifeFactor, withoutRefunds: false });
  const result = plan.kind === 'write' || plan.kind === 'answer' ? plan.results[0] : null;
  if (plan.kind !== 'write' || result?.kind !== 'granted') return result?.kind === 'id-taken' ? 'id-taken' : 'changed';
  if (line.image === null) {
    // Another shard than the first is never created: it was merged since it was looked at.
    if (line.shard > 0) return 'changed';
    const born = { ...applyShardWrite(image, plan.move, writeId), writeUnits: 2 };
    return { Put: buildCreate({ tableName: table.name, ns }, born) };
  }
  const expression = shardWriteExpression(ns, image, plan.move, { own: writeId, unanswered: [] });
  return { Update: { TableName: table.name, Key: keyOf(ns, key), ...expression.buildUpdate() } };
}

/** What undoes a part if the transaction that is about to be sent gets no answer; nothing where no holder would tell. */
function revocationIn({ call, leaseId }: AtomicAsking, { level, bucket, line, counts }: Part): (() => void)[] {
  if (level.holder === null) return [];
  const rates = level.asks
    .filter(({ name }) => level.limits.some((limit) => limit.name === name && isConsumed(limit.kind)))
    .map(({ name, milli }) => ({ name, milli: sub(0, milli) }));
  const ask: AskEntry = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts };
  const revocation = { ...revocationOfGrant(ask, rates), fences: line.image?.baseMs ?? null };
  const { shard } = line;
  return [() => bucket.revoke(shard, revocation, tuningOf(call))];
}

/** After an answer that did not come: the write's id, or the lease's holder, says that it landed. */
async function hasLanded(parts: readonly Part[], writeId: string, asking: AtomicAsking): Promise<boolean> {
  const { call, deadline, leaseId } = asking;
  for (const { line } of parts) {
    const image = await line.look(call.nowMs, deadline);
    if (image?.writeId === writeId || (leaseId !== null && image?.holders.has(leaseId) === true)) return true;
  }
  return false;
}
