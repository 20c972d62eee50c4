import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Call, LevelAnswer, LevelAsk } from '../../backend.js';
import { bornImage } from './born.js';
import type { BucketShards } from './bucket-shards.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from './deadline.js';
import type { AskEntry } from './entries.js';
import { buildCreate } from './expressions/create.js';
import { keyOf } from './expressions/keyed.js';
import { moveExpression } from './expressions/write-move.js';
import { errorOf } from './failures.js';
import { createWriteId } from './group-write.js';
import { planGroup } from './group.js';
import { applyMove } from './move.js';
import { placeOf } from './place.js';
import { send, type Table } from './requests.js';
import { revocationOf } from './revocation.js';
import type { ShardLine } from './shard-line.js';
import type { LevelOutcome } from './take-level.js';
import { tuningOf } from './tuning.js';

interface AtomicAsking {
  readonly table: Table;
  readonly call: Call;
  readonly leaseId: string | null;
  readonly deadline: Deadline;
  readonly levels: readonly { readonly level: LevelAsk; readonly bucket: BucketShards }[];
}

interface Prepared {
  readonly level: LevelAsk;
  readonly bucket: BucketShards;
  readonly line: ShardLine;
  readonly outcome: LevelOutcome;
}

/**
 * Takes from all levels in one transaction: not even a crash leaves one without the others. Each level is first brought
 * to where it could be taken from; then all are written, each under its own conditions, or none. Gives one outcome per
 * level, up to the first that is not granted.
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
    const prepared = await prepareAll(asking);
    const outcomes = prepared.map(({ outcome }) => outcome);
    if (prepared.length < asking.levels.length || outcomes.some(({ kind }) => kind !== 'granted')) return outcomes;
    const writeId = createWriteId(call.nowMs, table.random);
    const actions = prepared.map((one) => actionOf(asking, one, writeId));
    if (actions.includes('id-taken')) return [{ kind: 'id-taken' }];
    // Somebody else of this process was faster on one of the lines.
    if (actions.includes('changed')) continue;
    const TransactItems = actions as TransactWriteItem[];
    const revocations = prepared.flatMap((one) => revocationIn(asking, one));
    const answer = await send(table, 'TransactWriteItems', { TransactItems }, deadline);
    if (!answer.ok && answer.failure.kind === 'lost') doubts.push(...revocations);
    // A transaction shows no images: what was remembered is no longer so.
    for (const { line } of prepared) line.forget();
    if (answer.ok || (answer.failure.kind === 'lost' && (await hasLanded(prepared, writeId, asking)))) {
      return prepared.map(placed);
    }
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

async function prepareAll(asking: AtomicAsking): Promise<readonly Prepared[]> {
  const prepared: Prepared[] = [];
  for (const { level, bucket } of asking.levels) {
    const one = await prepare(asking, level, bucket);
    prepared.push(one);
    if (one.outcome.kind !== 'granted') break;
  }
  return prepared;
}

/** Settled, without expired holders in the way, and with an image that the store has just shown. */
async function prepare(asking: AtomicAsking, level: LevelAsk, bucket: BucketShards): Promise<Prepared> {
  const { call, deadline } = asking;
  const entry: AskEntry = { ...entryOf(asking, level), looksOnly: true };
  for (;;) {
    const line = bucket.line(bucket.pick());
    const outcome = await line.submit(entry, deadline, tuningOf(call), call.signal);
    if (outcome.kind === 'no-shard') {
      bucket.noteMissing(line.shard);
      continue;
    }
    return { level, bucket, line, outcome: outcome as LevelOutcome };
  }
}

function entryOf({ call, leaseId }: AtomicAsking, level: LevelAsk): AskEntry {
  return { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts: true };
}

function actionOf(
  asking: AtomicAsking,
  { level, line }: Prepared,
  writeId: string,
): TransactWriteItem | 'id-taken' | 'changed' {
  const { table, call } = asking;
  const { namespaceId: ns, nowMs } = call;
  const key = { entityId: level.entityId, resource: level.resource, shard: line.shard };
  const image = line.image ?? bornImage(key, level, nowMs);
  const lifeFactor = tuningOf(call).bucketLifeFactor;
  const plan = planGroup(image, [entryOf(asking, level)], { nowMs, trust: 'exact', lifeFactor, withoutRefunds: false });
  const result = plan.kind === 'write' || plan.kind === 'answer' ? plan.results[0] : null;
  if (plan.kind !== 'write' || result?.kind !== 'granted') return result?.kind === 'id-taken' ? 'id-taken' : 'changed';
  if (line.image === null) {
    const born = { ...applyMove(image, plan.move, writeId), writeUnits: 2 };
    return { Put: buildCreate({ tableName: table.name, ns }, born) };
  }
  const expression = moveExpression(ns, image, plan.move, { own: writeId, unanswered: [] });
  return { Update: { TableName: table.name, Key: keyOf(ns, key), ...expression.buildUpdate() } };
}

/** What undoes a level if the transaction that is about to be sent gets no answer; nothing where no holder would tell. */
function revocationIn(asking: AtomicAsking, { level, bucket, line, outcome }: Prepared): (() => void)[] {
  if (level.holder === null || outcome.kind !== 'granted') return [];
  const doubt = { baseMs: line.image?.baseMs ?? null, answer: outcome.answer };
  const { shard } = line;
  return [() => bucket.revoke(shard, revocationOf(entryOf(asking, level), doubt), tuningOf(asking.call))];
}

/** After an answer that did not come: the write's id, or the lease's holder, says that it landed. */
async function hasLanded(prepared: readonly Prepared[], writeId: string, asking: AtomicAsking): Promise<boolean> {
  const { call, deadline, leaseId } = asking;
  for (const { line } of prepared) {
    const image = await line.look(call.nowMs, deadline);
    if (image?.writeId === writeId || (leaseId !== null && image?.holders.has(leaseId) === true)) return true;
  }
  return false;
}

function placed({ outcome, line, bucket }: Prepared): LevelOutcome {
  if (outcome.kind !== 'granted' || (line.shard === 0 && bucket.count === 1)) return outcome;
  const taken = outcome.answer.verdicts.map(({ limit, requestedMilli }) => ({
    name: limit.name,
    milli: requestedMilli,
  }));
  const answer: LevelAnswer = { ...outcome.answer, place: [placeOf(line.shard, taken)] };
  return { ...outcome, answer };
}
