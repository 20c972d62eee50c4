import type { EpochMs } from '../../../../core/units.js';
import type { Checkpoint } from './checkpoints.js';
import type { StreamShard } from './stream-api.js';

/** What a worker should do with the shards of a stream. */
export interface ShardAssignment {
  /** Shards to claim, if their checkpoints did not change. */
  readonly claims: readonly StreamShard[];
  /** Unfinished shards that were removed from the stream: some of their changes may not have been counted. */
  readonly lost: readonly Checkpoint[];
}

export interface ShardReader {
  readonly me: string;
  /** The shards that this worker is reading. */
  readonly reading: ReadonlySet<string>;
}

/**
 * Workers share the shards evenly without communicating: each takes free shards, and a worker with at least two fewer
 * than another takes one of the other's. A shard is read only after its parent.
 */
export function assignShards(
  shards: readonly StreamShard[],
  checkpoints: ReadonlyMap<string, Checkpoint>,
  { me, reading }: ShardReader,
  nowMs: EpochMs,
): ShardAssignment {
  const ownerOf = (id: string): string | null => {
    const checkpoint = checkpoints.get(id);
    return checkpoint === undefined || checkpoint.untilMs <= nowMs ? null : checkpoint.owner;
  };
  const isDone = (id: string): boolean => checkpoints.get(id)?.done === true;
  const listed = new Set(shards.map(({ id }) => id));
  const readable = shards.filter(
    ({ id, parentId }) => !isDone(id) && (parentId === null || !listed.has(parentId) || isDone(parentId)),
  );
  const owned = new Map<string, StreamShard[]>([[me, []]]);
  const free: StreamShard[] = [];
  for (const shard of readable) {
    // A shard that this worker is reading counts as its own even when its lease was not renewed in time: it must not
    // read the shard twice.
    const owner = reading.has(shard.id) ? (ownerOf(shard.id) ?? me) : ownerOf(shard.id);
    // A shard that this worker owns but does not read: the answer to its claim was lost.
    if (owner === null || (owner === me && !reading.has(shard.id))) free.push(shard);
    else owned.set(owner, [...(owned.get(owner) ?? []), shard]);
  }
  const fair = Math.ceil(readable.length / owned.size);
  const mine = owned.get(me)?.length ?? 0;
  // Take at least one: the other workers may all have stopped.
  const room = Math.max(fair - mine, free.length > 0 ? 1 : 0);
  const claims = free.slice(0, room);
  if (claims.length === 0) {
    const [largest = []] = [...owned.values()].toSorted((a, b) => b.length - a.length);
    const taken = largest.findLast(({ id }) => !reading.has(id));
    if (taken !== undefined && largest.length >= mine + 2) claims.push(taken);
  }
  const lost = [...checkpoints.values()].filter(
    ({ shardId, done }) => !done && !listed.has(shardId) && !reading.has(shardId) && (ownerOf(shardId) ?? me) === me,
  );
  return { claims, lost };
}
