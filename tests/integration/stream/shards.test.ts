import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.js';
import { Limit } from '../../../src/core/limit.js';
import { readCheckpoints } from '../../../src/backends/dynamodb/stream/worker/checkpoints.js';
import { repairUsage } from '../../../src/backends/dynamodb/stream/rebuild/repair-usage.js';
import { type StreamApi, streamTrimmed } from '../../../src/backends/dynamodb/stream/worker/stream-api.js';
import { followStream } from '../../../src/backends/dynamodb/stream/worker/follow-stream.js';
import type { TrimmedStream, WorkerOptions } from '../../../src/backends/dynamodb/stream/worker/worker-options.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../support/dynamodb/world.js';

interface ScriptedShard {
  readonly parentId?: string;
  readonly records: number;
  readonly closed?: boolean;
  /** Records before this one were trimmed. */
  readonly trimmedTo?: number;
}

/**
 * A stream whose shards close, split and are trimmed, which no local engine supports. Its records belong to no bucket.
 */
function scripted(label: string, shards: Record<string, ScriptedShard>): StreamApi & { readonly log: string[] } {
  const log: string[] = [];
  return {
    label,
    log,
    listShards: async () => Object.entries(shards).map(([id, { parentId }]) => ({ id, parentId: parentId ?? null })),
    locate: async (id, after) => {
      const { trimmedTo = 0 } = shards[id]!;
      if (after !== null && Number(after) < trimmedTo) throw streamTrimmed('limits');
      return `${id} ${after ?? trimmedTo}`;
    },
    read: async (place) => {
      const [id = '', from] = place.split(' ');
      const { records: count, closed } = shards[id]!;
      const to = Math.min(count, Number(from) + 2);
      const records = Array.from({ length: to - Number(from) }, (_, at) => ({
        eventName: 'INSERT',
        dynamodb: { SequenceNumber: String(Number(from) + at + 1), Keys: { PK: { S: 'x' }, SK: { S: 'y' } } },
      }));
      if (records.length > 0) log.push(`${id} ${to}`);
      return { records, next: closed === true && to === count ? null : `${id} ${to}` };
    },
    close: () => {},
  };
}

describe.skipIf(ENGINE.missing)(`shards of a stream${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Runs a worker until it has read all shards to the end, and returns what it reported as trimmed. */
  const follow = async (stream: StreamApi, options: Partial<WorkerOptions> = {}): Promise<TrimmedStream[]> => {
    const stop = new AbortController();
    const trimmed: TrimmedStream[] = [];
    let quiet = 0;
    await followStream(world.table, stream, systemClock, {
      pollMs: 2,
      discoverMs: 5,
      progressMs: 5,
      ...options,
      signal: stop.signal,
      onTrimmed: (one) => trimmed.push(one),
      onProgress: ({ caughtUp, recordsPerSec }) => {
        quiet = caughtUp && recordsPerSec === 0 ? quiet + 1 : 0;
        if (quiet === 5) stop.abort();
      },
    });
    return trimmed;
  };
  const checkpointsOf = async (label: string) => {
    const found = [...(await readCheckpoints(world.table, label)).values()];
    return found.map(({ shardId, sequenceNumber, done, owner }) => `${shardId} ${sequenceNumber} ${done} ${owner}`);
  };

  test('shards are read from the parent to the child, and their checkpoints are released', async () => {
    const stream = scripted('family', {
      'b-child': { parentId: 'a-parent', records: 3 },
      'a-parent': { parentId: 'gone', records: 3, closed: true },
    });
    expect(await follow(stream)).toEqual([]);
    expect(stream.log).toEqual(['a-parent 2', 'a-parent 3', 'b-child 2', 'b-child 3']);
    expect(await checkpointsOf('family')).toEqual(['a-parent 3 true null', 'b-child 3 false null']);
  });

  test('the next worker continues a shard after its checkpoint', async () => {
    await follow(scripted('resumed', { one: { records: 4 } }));
    const longer = scripted('resumed', { one: { records: 6 } });
    await follow(longer);
    expect(longer.log).toEqual(['one 6']);
  });

  test('a shard that was trimmed behind its checkpoint is reported, and read from its first record', async () => {
    await follow(scripted('trimmed', { one: { records: 2 } }));
    const later = scripted('trimmed', { one: { records: 9, trimmedTo: 5 } });
    expect(await follow(later)).toEqual([{ shardId: 'one', sequenceNumber: '2' }]);
    expect(later.log).toEqual(['one 7', 'one 9']);
    expect(await follow(later)).toEqual([]);
  });

  test('a shard that disappeared before it was read to its end is reported once', async () => {
    await follow(scripted('vanished', { one: { records: 2 } }));
    const later = scripted('vanished', { two: { parentId: 'one', records: 1 } });
    expect(await follow(later)).toEqual([{ shardId: 'one', sequenceNumber: '2' }]);
    expect(later.log).toEqual(['two 1']);
    expect(await follow(later)).toEqual([]);
  });

  test('a trimmed shard does not prevent a rebuild', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.perMinute('rpm', 60)] });
    await limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 3 } });
    await space.clock.advance(60_000);
    await follow(scripted('rebuilt', { one: { records: 2 } }));
    const stream = scripted('rebuilt', { one: { records: 9, trimmedTo: 5 } });
    const { ns, clock } = space;
    const job = { table: world.table, stream, ns, entityId: 'user-1', resource: 'gpt-4', clock };
    expect(await repairUsage(job)).toEqual({ consumedMilli: new Map([['rpm', 3_000]]), acquires: 1, expired: 0 });
    expect(await repairUsage(job)).toEqual({ consumedMilli: new Map(), acquires: 0, expired: 0 });
  });

  test('a worker that starts later gets its part of the shards', async () => {
    const shards = Object.fromEntries(['a', 'b', 'c', 'd'].map((id) => [id, { records: 1 }]));
    const stop = new AbortController();
    const had = new Map<string, number>();
    const worker = (owner: string): Promise<void> =>
      followStream(world.table, scripted('shared', shards), systemClock, {
        owner,
        // Short, so that a worker soon notices that another one owns a shard.
        leaseMs: 600,
        pollMs: 5,
        discoverMs: 10,
        progressMs: 10,
        signal: stop.signal,
        onProgress: (progress) => {
          had.set(owner, progress.shards);
          if (had.get('first') === 2 && had.get('second') === 2) stop.abort();
        },
      });
    await Promise.all([worker('first'), worker('second')]);
    expect(stop.signal.aborted).toBe(true);
  });

  test('the worker rejects with the error of work that runs alongside', async () => {
    const failing = async (): Promise<never> => Promise.reject(new Error('the reconciler cannot continue'));
    const stream = scripted('alongside', { one: { records: 1 } });
    await expect(follow(stream, { alongside: [failing] })).rejects.toThrow('the reconciler cannot continue');
  });

  test('a worker reads a stream that was disabled to its end, and then rejects: a stream that is enabled later is another one', async () => {
    const stream = {
      ...scripted('disabled', {
        one: { records: 3, closed: true },
        two: { parentId: 'one', records: 2, closed: true },
      }),
      isDisabled: () => true,
    };
    const options = { pollMs: 2, discoverMs: 5 };
    await expect(followStream(world.table, stream, systemClock, options)).rejects.toMatchObject({
      code: 'infrastructure.stream-missing',
    });
    expect(stream.log).toEqual(['one 2', 'one 3', 'two 2']);
    expect(await checkpointsOf('disabled')).toEqual(['one 3 true null', 'two 2 true null']);
  });

  test('a child that the stream lists late is read after its parent', async () => {
    const stream = scripted('late', {
      parent: { records: 1, closed: true },
      child: { parentId: 'parent', records: 1 },
    });
    let lists = 0;
    const listShards = async () => {
      if (stream.log.includes('parent 1')) lists += 1;
      return (await stream.listShards()).slice(0, lists > 1 ? 2 : 1);
    };
    expect(await follow({ ...stream, listShards })).toEqual([]);
    expect(stream.log).toEqual(['parent 1', 'child 1']);
  });

  test('an expired iterator is located again, and no record is read twice or skipped', async () => {
    const stream = scripted('expired', { one: { records: 4 } });
    let reads = 0;
    const read: StreamApi['read'] = async (iterator) => {
      if (iterator === 'one 2') reads += 1;
      return reads === 1 ? null : stream.read(iterator);
    };
    expect(await follow({ ...stream, read })).toEqual([]);
    expect(stream.log).toEqual(['one 2', 'one 4']);
  });
});
