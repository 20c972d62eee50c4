import type { Call, LevelAnswer, LevelAsk } from '../../../backend.js';
import { type Amount, amountOf, askOf } from '../../../core/bucket/decide.js';
import { leastOf, withAmount } from '../../../core/bucket/at-most.js';
import { sub, toInt } from '../../../core/int.js';
import { isConsumed } from '../../../core/limit-kind.js';
import { MAX_WRITES_AT_ONCE } from '../bucket/executor.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../machine-time.js';
import type { AskEntry } from '../bucket/group/entries.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import { setShadowsAside } from '../bucket/group/plan-group.js';
import { readLocation } from '../bucket/grant-location.js';
import { revocationOfGrant } from '../bucket/group/revocation.js';
import type { Shard } from './shard.js';
import { type LevelOutcome, partialAsk } from './take-across.js';
import { takeLevel } from './take-level.js';
import { planInTransaction } from './transaction-write.js';

interface AtomicAsking {
  readonly call: Call;
  readonly leaseId: string | null;
  readonly deadline: Deadline;
  readonly levels: readonly { readonly level: LevelAsk; readonly bucket: BucketShards }[];
}

/** One shard that a level takes from, and the part of the ask that it gives. */
interface Part {
  readonly bucket: BucketShards;
  readonly shard: Shard;
  readonly level: LevelAsk;
  /** False for the second and further parts of one grant: a grant is counted once. */
  readonly counts: boolean;
  /** The shadows that the dry run found short, with the amounts that are counted. */
  readonly untaken: readonly Amount[];
}

/**
 * Takes from all levels in one transaction, so that even a crash cannot leave one level taken without the others. First
 * a dry run finds, by the rules of any other ask, the shards that each level can be taken from. Then one transaction
 * writes all levels, each under its own conditions, or none. Returns one outcome per level, up to the first that is not
 * granted.
 */
export async function takeAtomically(asking: AtomicAsking): Promise<readonly LevelOutcome[]> {
  const doubts: (() => void)[] = [];
  let isGranted = false;
  try {
    const outcomes = await takeInTransaction(asking, doubts);
    isGranted = outcomes.length === asking.levels.length && outcomes.every(({ kind }) => kind === 'granted');
    return outcomes;
  } finally {
    // A transaction that got no answer may have been written, or may still be.
    if (!isGranted) for (const revoke of doubts) revoke();
  }
}

async function takeInTransaction(whole: AtomicAsking, doubts: (() => void)[]): Promise<readonly LevelOutcome[]> {
  let asking = whole;
  const { call, deadline } = asking;
  const shadows = shadowsOf(whole);
  // One attempt is left in which the shadows are not taken.
  const maxRetries = Math.max(tuningOf(call).maxRetries, shadows === 'none' ? 0 : 1);
  const { executor } = (asking.levels[0] as AtomicAsking['levels'][number]).bucket;
  for (let attempt = 0; ; attempt++) {
    const dryRun = await dryRunLevels(asking);
    // Nor after a lost answer: its holders would not show whether it took the shadows.
    const isAside = shadows !== 'none' && doubts.length === 0 && attempt > maxRetries / 2;
    const outcomes = isAside ? dryRun.map(takingNoShadows) : dryRun;
    if (outcomes.length < asking.levels.length || outcomes.some(({ kind }) => kind !== 'granted')) {
      // Other writers have taken from the amount that the levels had agreed on.
      const mayTakeLess = asking !== whole && doubts.length === 0 && attempt < maxRetries;
      if (!mayTakeLess || !outcomes.some(({ kind }) => kind === 'denied')) return outcomes;
      asking = whole;
      continue;
    }
    const answers = outcomes.flatMap((outcome) => (outcome.kind === 'granted' ? [outcome.answer] : []));
    const cut = agreed(asking, answers);
    if (cut !== null) asking = { ...asking, levels: cut.levels };
    // Where a level would take more than another can give, the dry run is made again with what all of them can give.
    if (cut !== null && !cut.isTaken) continue;
    const parts = outcomes.flatMap((outcome, at) => partsOf(asking.levels[at], outcome));
    // The shards do not fit into one transaction until some of them merge.
    if (parts.length > MAX_WRITES_AT_ONCE) return [{ kind: 'contended' }];
    const writeId = createWriteId(call.nowMs, executor.random);
    const writes: PartWrite[] = [];
    const obstacles = new Set<'id-taken' | 'changed'>();
    for (const part of parts) {
      const write = writeOf(asking, part, writeId, isAside);
      if (typeof write === 'string') obstacles.add(write);
      else writes.push(write);
    }
    if (obstacles.has('id-taken')) return [{ kind: 'id-taken' }];
    // Another call of this process changed one of the shards since the dry run.
    if (obstacles.has('changed')) {
      if (attempt >= maxRetries) return [{ kind: 'contended' }];
      continue;
    }
    const revocations = parts.flatMap((part, at) => revocationIn(asking, part, writes[at]?.holderText ?? null));
    const answer = await executor.writeAll(
      writes.map(({ write }) => write),
      deadline,
    );
    if (answer.kind === 'no-answer') doubts.push(...revocations);
    // A transaction returns no images, so the cached ones are stale.
    for (const { shard } of parts) shard.forget();
    if (answer.kind === 'written') return outcomes;
    if (answer.kind === 'no-answer' && (await hasLanded(parts, writes, writeId, asking))) return outcomes;
    if (answer.kind === 'failed') throw answer.error;
    // Nothing was written, so the next attempt may take another amount. After a lost answer it must not: its holders
    // would not show which amount was taken.
    if (doubts.length === 0) asking = whole;
    const waitMs = backOffMs(attempt, executor.random);
    // No limit can refuse an ask of shadows, and other writers must not.
    const isLast = attempt >= maxRetries && (shadows !== 'only' || answer.kind === 'no-answer');
    if (isLast || timeLeftMs(deadline) <= waitMs) {
      // Other writers won each attempt. Any other failure is for the outage policy.
      const isContended = answer.kind === 'refused' || (answer.kind === 'busy' && answer.cause === 'conflict');
      if (isContended) return [{ kind: 'contended' }];
      throw answer.error;
    }
    await sleep(waitMs);
  }
}

/** Whether the ask has shadows, or only shadows. */
function shadowsOf({ levels }: AtomicAsking): 'none' | 'some' | 'only' {
  const asks = levels.flatMap(({ level }) => level.asks);
  if (!asks.some(({ shadow }) => shadow === true)) return 'none';
  return asks.every(({ shadow }) => shadow === true) ? 'only' : 'some';
}

/** A grant that takes nothing of its shadows: they are counted once, on its first shard. */
function takingNoShadows(outcome: LevelOutcome): LevelOutcome {
  if (outcome.kind !== 'granted') return outcome;
  const { answer } = outcome;
  const verdicts = setShadowsAside(answer.verdicts);
  const untaken = verdicts.flatMap(({ limit, shadow }) => (shadow === true ? [limit.name] : []));
  if (answer.place === undefined) return { ...outcome, answer: { ...answer, verdicts } };
  const place = readLocation(answer.place).flatMap(({ shard, taken }, at) => {
    const enforced = taken.filter(({ name }) => !untaken.includes(name));
    if (at === 0) return [{ shard, taken: [...enforced, ...untaken.map((name) => ({ name, milli: '0' }))] }];
    return enforced.length === 0 ? [] : [{ shard, taken: enforced }];
  });
  return { ...outcome, answer: { ...answer, verdicts, place } };
}

/** The levels with the amount that all of them can give of the limit that may be cut. null: there is none. */
function agreed(
  { levels }: AtomicAsking,
  answers: readonly LevelAnswer[],
): { readonly levels: AtomicAsking['levels']; readonly isTaken: boolean } | null {
  const cut = levels.flatMap(({ level }) => level.asks).find(({ atMost }) => atMost === true);
  const least = leastOf(answers);
  if (cut === undefined || least === null) return null;
  const { name } = cut;
  const found = answers.flatMap(({ verdicts }) => verdicts.filter(({ limit }) => limit.name === name));
  return {
    levels: levels.map(({ level, bucket }) => ({ level: withAmount(level, name, least), bucket })),
    isTaken: found.every(({ requestedMilli }) => requestedMilli === least),
  };
}

/** Settles and reclaims where a level needs it, and reads images that the plan can treat as exact. */
async function dryRunLevels({ call, leaseId, deadline, levels }: AtomicAsking): Promise<readonly LevelOutcome[]> {
  const outcomes: LevelOutcome[] = [];
  for (const { level, bucket } of levels) {
    const outcome = await takeLevel({ call, bucket, level, leaseId, deadline, dryRun: true });
    outcomes.push(outcome);
    if (outcome.kind !== 'granted') break;
  }
  return outcomes;
}

function partsOf(asked: AtomicAsking['levels'][number] | undefined, outcome: LevelOutcome): readonly Part[] {
  if (asked === undefined || outcome.kind !== 'granted') return [];
  const { level, bucket } = asked;
  const locations = readLocation(outcome.answer.place);
  const untaken = outcome.answer.verdicts
    .filter(({ waitMs }) => waitMs !== 0)
    .map(({ limit, requestedMilli }) => ({ name: limit.name, milli: requestedMilli }));
  return locations.map(({ shard, taken }, at) => {
    const asks = taken.map(({ name, milli }) => ({
      ...askOf(level.asks, name),
      name,
      milli: amountOf(untaken, name) ?? toInt(BigInt(milli)),
    }));
    return {
      untaken: untaken.filter(({ name }) => askOf(asks, name) !== undefined || locations.length === 1),
      bucket,
      shard: bucket.shard(shard),
      level: locations.length === 1 ? level : partialAsk(level, asks),
      counts: at === 0,
    };
  });
}

type PartWrite = Extract<ReturnType<typeof planInTransaction>, { readonly kind: 'write' }>;

function writeOf(
  { call, leaseId }: AtomicAsking,
  { level, shard, counts, untaken }: Part,
  writeId: string,
  shadowsAside: boolean,
): PartWrite | 'id-taken' | 'changed' {
  const ask: AskEntry = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts, passesShadows: true };
  const planned = planInTransaction(call, shard, shadowsAside ? { ...ask, shadowsAside } : ask, writeId);
  const result = planned.kind === 'changed' ? null : planned.result;
  if (result?.kind === 'id-taken') return 'id-taken';
  if (planned.kind !== 'write' || result?.kind !== 'granted') return 'changed';
  // The lease gives back what the dry run says that it took.
  const isAsPlanned = result.answer.verdicts.every(
    ({ limit, waitMs }) => (waitMs !== 0) === (amountOf(untaken, limit.name) !== undefined),
  );
  return isAsPlanned ? planned : 'changed';
}

/**
 * Functions that undo a part if the transaction gets no answer. None without a holder, because nothing would show
 * whether the part was taken.
 */
function revocationIn({ call, leaseId }: AtomicAsking, part: Part, holderText: string | null): (() => void)[] {
  const { level, bucket, shard, counts, untaken } = part;
  if (holderText === null) return [];
  const rates = level.asks
    .filter(({ name }) => amountOf(untaken, name) === undefined)
    .filter(({ name }) => level.limits.some((limit) => limit.name === name && isConsumed(limit.kind)))
    .map(({ name, milli }) => ({ name, milli: sub(0, milli) }));
  const ask: AskEntry = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts };
  const revocation = { ...revocationOfGrant(ask, rates, untaken), fences: shard.image?.baseMs ?? null, holderText };
  return [() => bucket.revoke(shard.number, revocation, tuningOf(call))];
}

/** After a lost answer: the write id or the holder of the lease shows whether the transaction landed. */
async function hasLanded(
  parts: readonly Part[],
  writes: readonly PartWrite[],
  writeId: string,
  { call, deadline, leaseId }: AtomicAsking,
): Promise<boolean> {
  for (const [at, { shard }] of parts.entries()) {
    const image = await shard.read(call.nowMs, deadline);
    if (image?.writeId === writeId) return true;
    const text = writes[at]?.holderText ?? null;
    if (text !== null && image?.holders.get(leaseId ?? '')?.text === text) return true;
  }
  return false;
}
