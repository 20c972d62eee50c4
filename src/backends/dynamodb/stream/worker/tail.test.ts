import { expect, test } from 'vitest';
import { InfrastructureError } from '../../../../core/errors.js';
import type { Table } from '../../client/requests.js';
import type { Poison } from '../decode.js';
import type { StreamApi } from './stream-api.js';
import { Tail, type TailPosition } from './tail.js';

/** Nothing is counted in these tests, so that nothing may be asked of the table. */
const TABLE: Table = {
  name: 'limits',
  transport: {
    send: async (operation) => Promise.reject(new Error(`${operation} was sent`)),
    storeTimeMs: () => 0,
    close: () => {},
  },
  random: () => 0,
};

interface ScriptedShard {
  readonly parentId?: string;
  records: unknown[];
  closed?: boolean;
  /** DynamoDB need not list a new shard at once. */
  hidden?: boolean;
}

/** A stream whose shards close and split, which no engine of ours does; pages have two records. */
class ScriptedStream implements StreamApi {
  readonly label = 'label';
  readonly shards: Record<string, ScriptedShard>;
  readonly log: string[] = [];
  #expired = new Set<string>();

  constructor(shards: Record<string, ScriptedShard>) {
    this.shards = shards;
  }

  /** All places that were given out so far can no longer be used. */
  expire(): void {
    this.#expired = new Set(Object.keys(this.shards).flatMap((id) => [...Array(20).keys()].map((at) => `${id} ${at}`)));
  }

  async listShards() {
    this.log.push('list');
    const listed = Object.entries(this.shards).filter(([, { hidden }]) => hidden !== true);
    return listed.map(([id, { parentId }]) => ({ id, parentId: parentId ?? null }));
  }

  async locate(shardId: string, afterSequence: string | null) {
    this.#expired.clear();
    return `${shardId} ${afterSequence === null ? 0 : Number(afterSequence)}`;
  }

  async read(place: string) {
    if (this.#expired.has(place)) return null;
    const [id = '', from] = place.split(' ');
    const shard = this.shards[id]!;
    const page = shard.records.slice(Number(from), Number(from) + 2);
    this.log.push(`${id} ${from}+${page.length}`);
    const to = Number(from) + page.length;
    return { records: page, next: shard.closed === true && to === shard.records.length ? null : `${id} ${to}` };
  }

  close(): void {}
}

/** Records of nobody's, whose numbers begin with 1. */
function records(count: number): unknown[] {
  return Array.from({ length: count }, (_, at) => ({
    eventName: 'INSERT',
    dynamodb: { SequenceNumber: String(at + 1), Keys: { PK: { S: 'x' }, SK: { S: 'y' } } },
  }));
}

function tailOf(stream: StreamApi, from?: TailPosition): Tail {
  return new Tail(TABLE, stream, from === undefined ? {} : { from });
}

test('a stream is read to its end, and the next time from there', async () => {
  const stream = new ScriptedStream({ one: { records: records(3) } });
  const tail = tailOf(stream);
  expect(await tail.foldAll()).toEqual({ records: 3 });
  expect(stream.log).toEqual(['list', 'one 0+2', 'one 2+1', 'one 3+0']);
  stream.log.length = 0;
  stream.shards['one']!.records = records(4);
  expect(await tail.foldAll()).toEqual({ records: 1 });
  expect(stream.log).toEqual(['one 3+1', 'one 4+0']);
});

test('a shard is read only when its parent has been read to the end', async () => {
  const stream = new ScriptedStream({
    child: { parentId: 'parent', records: records(1) },
    grandchild: { parentId: 'child', records: records(1) },
    parent: { parentId: 'gone', records: records(3), closed: true },
  });
  const tail = tailOf(stream);
  await tail.foldAll();
  expect(stream.log.filter((entry) => entry !== 'list')).toEqual([
    'parent 0+2',
    'parent 2+1',
    'child 0+1',
    'child 1+0',
  ]);
  stream.shards['child']!.closed = true;
  await tail.foldAll();
  expect(stream.log.slice(-2)).toEqual(['grandchild 0+1', 'grandchild 1+0']);
});

test('children that are listed late are found', async () => {
  const stream = new ScriptedStream({
    parent: { records: records(1), closed: true },
    child: { parentId: 'parent', records: records(1), hidden: true },
  });
  const tail = tailOf(stream);
  expect(await tail.foldAll()).toEqual({ records: 1 });
  stream.shards['child']!.hidden = false;
  expect(await tail.foldAll()).toEqual({ records: 1 });
  stream.log.length = 0;
  await tail.foldAll();
  expect(stream.log).toEqual(['child 1+0']);
});

test('a place that has expired is looked up again', async () => {
  const stream = new ScriptedStream({ one: { records: records(3) } });
  const tail = tailOf(stream);
  await tail.foldAll();
  stream.expire();
  stream.shards['one']!.records = records(5);
  expect(await tail.foldAll()).toEqual({ records: 2 });
});

test('another tail goes on from a position, also where a shard was read to its end', async () => {
  const shards = {
    parent: { records: records(2), closed: true },
    child: { parentId: 'parent', records: records(3) },
  };
  const first = tailOf(new ScriptedStream(shards));
  await first.foldAll();
  expect(first.position()).toEqual({ label: 'label', shards: { parent: null, child: '3' } });
  shards.child.records = records(4);
  expect(await tailOf(new ScriptedStream(shards), first.position()).foldAll()).toEqual({ records: 1 });
});

test('a position in another stream says nothing about this one', async () => {
  const stream = new ScriptedStream({ one: { records: records(3) } });
  const from = { label: 'an older label', shards: { one: '2' } };
  expect(await tailOf(stream, from).foldAll()).toEqual({ records: 3 });
});

test('changes that were removed before they were read are an error, not a gap', async () => {
  const stream = new ScriptedStream({ later: { parentId: 'gone', records: records(1) } });
  const tail = tailOf(stream, { label: 'label', shards: { gone: '17' } });
  await expect(tail.foldAll()).rejects.toThrow(InfrastructureError);
  await expect(tail.foldAll()).rejects.toMatchObject({ code: 'infrastructure.stream-trimmed' });
});

test('a record that cannot be understood is told of, and passed over', async () => {
  const poison: Poison[] = [];
  const [first, , third] = records(3);
  const stream = new ScriptedStream({ one: { records: [first, { eventName: 'INSERT', eventID: 'e' }, third] } });
  const tail = new Tail(TABLE, stream, { onPoison: (one) => poison.push(one) });
  expect(await tail.foldAll()).toEqual({ records: 3 });
  expect(poison).toMatchObject([{ kind: 'poison', eventId: 'e' }]);
});

test('calls at the same time take turns, and each sees what was there when it was made', async () => {
  const stream = new ScriptedStream({ one: { records: records(3) } });
  const tail = tailOf(stream);
  expect(await Promise.all([tail.foldAll(), tail.foldAll()])).toEqual([{ records: 3 }, { records: 0 }]);
});

test('a page that could not be counted is read again', async () => {
  const stream = new ScriptedStream({ one: { records: records(1) } });
  const tail = tailOf(stream);
  const Keys = { PK: { S: 'ns/BUCKET#a#b#0' }, SK: { S: '#STATE' } };
  const dynamodb = { SequenceNumber: '2', Keys, NewImage: { w: { S: '00000000' } } };
  stream.shards['one']!.records = [...records(1), { eventName: 'INSERT', dynamodb }];
  await expect(tail.foldAll()).rejects.toThrow('BatchGetItem was sent');
  expect(tail.position().shards).toEqual({});
  stream.shards['one']!.records = records(2);
  expect(await tail.foldAll()).toEqual({ records: 2 });
});
