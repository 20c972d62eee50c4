import { describe, expect, test } from 'vitest';
import type { Checkpoint } from './checkpoints.js';
import { assignShards } from './assign-shards.js';
import type { StreamShard } from './stream-api.js';

const NOW_MS = 1_000;
const ME = { me: 'me', reading: new Set<string>() };

function shards(...ids: readonly string[]): StreamShard[] {
  return ids.map((id) => ({ id, parentId: null }));
}

function known(...entries: readonly (Partial<Checkpoint> & { readonly shardId: string })[]) {
  const rest = { sequenceNumber: '7', done: false, owner: null, untilMs: 0 };
  return new Map(entries.map((entry) => [entry.shardId, { ...rest, ...entry }]));
}

const ids = (claims: readonly StreamShard[]): readonly string[] => claims.map(({ id }) => id);

describe('claiming shards', () => {
  test('a single worker claims all free shards', () => {
    const checkpoints = known({ shardId: 'a' }, { shardId: 'b', owner: 'dead', untilMs: NOW_MS });
    expect(ids(assignShards(shards('a', 'b', 'c'), checkpoints, ME, NOW_MS).claims)).toEqual(['a', 'b', 'c']);
  });

  test('a worker claims its fair part of the free shards, and at least one', () => {
    const checkpoints = known({ shardId: 'a', owner: 'other', untilMs: NOW_MS + 1 });
    expect(ids(assignShards(shards('a', 'b', 'c', 'd'), checkpoints, ME, NOW_MS).claims)).toEqual(['b', 'c']);
    expect(ids(assignShards(shards('a', 'b'), checkpoints, ME, NOW_MS).claims)).toEqual(['b']);
  });

  test('a worker claims a shard of one that has two more, and of no other', () => {
    const other = { owner: 'other', untilMs: NOW_MS + 1 };
    const two = known({ shardId: 'a', ...other }, { shardId: 'b', ...other });
    expect(ids(assignShards(shards('a', 'b'), two, ME, NOW_MS).claims)).toEqual(['b']);
    expect(assignShards(shards('a'), known({ shardId: 'a', ...other }), ME, NOW_MS).claims).toEqual([]);
    const mine = known({ shardId: 'a', ...other }, { shardId: 'b', owner: 'me', untilMs: NOW_MS + 1 });
    const reading = { me: 'me', reading: new Set(['b']) };
    expect(assignShards(shards('a', 'b'), mine, reading, NOW_MS).claims).toEqual([]);
  });

  test('a worker claims its own shards again when the answer to a claim was lost', () => {
    const mine = known({ shardId: 'a', owner: 'me', untilMs: NOW_MS + 1 });
    expect(ids(assignShards(shards('a'), mine, ME, NOW_MS).claims)).toEqual(['a']);
  });

  test('a worker does not claim a shard that it is reading, although its lease was not renewed in time', () => {
    const late = known({ shardId: 'a', owner: 'me', untilMs: NOW_MS }, { shardId: 'b', owner: null, untilMs: 0 });
    const reading = { me: 'me', reading: new Set(['a', 'b']) };
    expect(assignShards(shards('a', 'b'), late, reading, NOW_MS)).toEqual({ claims: [], lost: [] });
    expect(assignShards([], late, reading, NOW_MS).lost).toEqual([]);
    const other = { owner: 'other', untilMs: NOW_MS + 1 };
    const taken = known({ shardId: 'a', ...other }, { shardId: 'b', ...other });
    expect(assignShards(shards('a', 'b'), taken, reading, NOW_MS).claims).toEqual([]);
  });

  test('a worker claims children only after their parent was read to its end or removed', () => {
    const family = [
      { id: 'parent', parentId: 'gone' },
      { id: 'child', parentId: 'parent' },
    ];
    expect(ids(assignShards(family, new Map(), ME, NOW_MS).claims)).toEqual(['parent']);
    expect(ids(assignShards(family, known({ shardId: 'parent', done: true }), ME, NOW_MS).claims)).toEqual(['child']);
  });
});

describe('shards that were removed from the stream', () => {
  test('a removed shard is lost if it was not read to its end', () => {
    const checkpoints = known({ shardId: 'lost' }, { shardId: 'read', done: true });
    expect(assignShards([], checkpoints, ME, NOW_MS).lost.map(({ shardId }) => shardId)).toEqual(['lost']);
  });

  test('a removed shard is left to the worker that owns it', () => {
    const checkpoints = known({ shardId: 'lost', owner: 'other', untilMs: NOW_MS + 1 });
    expect(assignShards([], checkpoints, ME, NOW_MS).lost).toEqual([]);
  });
});
