import type { EpochMs } from '../../../../core/units.js';
import type { Checkpoint } from './checkpoints.js';
import type { StreamShard } from './stream-api.js';

/** What a worker should do about the shards of a stream. */
export interface ShardAssignment {
  /** To be claimed, if they still are as seen. */
  readonly claims: readonly StreamShard[];
  /** Were being read, and are gone from the stream: some of their changes may never have been seen. */
  readonly lost: readonly Checkpoint[];
}

export interface ShardReader {
  readonly me: string;
  /** The shards that it is reading. */
  readonly reading: ReadonlySet<string>;
}

/**
 * Workers share the shards evenly without talking to each other: each takes what is free, and one that has at least two
 * less than another takes one of that one's. A shard is read only after its parent.
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
    // What is being read is being read, also if its lease could not be renewed in time: a second reader of one's own helps nobody.
    const owner = reading.has(shard.id) ? (ownerOf(shard.id) ?? me) : ownerOf(shard.id);
    // One that is this worker's without its knowledge: the answer to its claim was lost.
    if (owner === null || (owner === me && !reading.has(shard.id))) free.push(shard);
    else owned.set(owner, [...(owned.get(owner) ?? []), shard]);
  }
  const fair = Math.ceil(readable.length / owned.size);
  const mine = owned.get(me)?.length ?? 0;
  // Nobody may be left to take what is over.
  const room = Math.max(fair - mine, free.length > 0 ? 1 : 0);
  const claims = free.slice(0, room);
  if (claims.length === 0) {
    const [richest = []] = [...owned.values()].toSorted((a, b) => b.length - a.length);
    const taken = richest.findLast(({ id }) => !reading.has(id));
    if (taken !== undefined && richest.length >= mine + 2) claims.push(taken);
  }
  const lost = [...checkpoints.values()].filter(
    ({ shardId, done }) => !done && !listed.has(shardId) && !reading.has(shardId) && (ownerOf(shardId) ?? me) === me,
  );
  return { claims, lost };
}
