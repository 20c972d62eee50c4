import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Int } from '../../../../core/int.js';
import { addUsage, NO_USAGE, USAGE_WINDOWS, type UsageCounts, windowStart } from '../../../../core/usage/usage.js';
import type { ShardCounters } from '../../table/items.js';
import type { BucketChange } from '../decode.js';
import { foldUsage, inGroupsOf, newerParts, spansOf, totalOf, usageOf, type UsageSum } from './usage.js';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2027, 0, 31, 22);

function counters(consumed: Record<string, Int>, acquires = 0, expired = 0, shardCount = 1): ShardCounters {
  return { consumedMilli: new Map(Object.entries(consumed)), acquires, expired, shardCount, writtenAtMs: null };
}

function sequenceOf(number: number): string {
  return `label/${String(number).padStart(40, '0')}`;
}

function change(number: number, overrides: Partial<BucketChange> = {}): BucketChange {
  return {
    kind: 'bucket',
    event: 'MODIFY',
    expired: false,
    ns: 'ns1',
    key: { entityId: 'user-1', resource: 'gpt-4', shard: 0 },
    sequence: sequenceOf(number),
    atMs: START_MS,
    before: counters({ rpm: 1_000 }, 1),
    after: counters({ rpm: 3_000 }, 2),
    item: {},
    unknownAttribute: null,
    ...overrides,
  };
}

describe('the usage of a change', () => {
  test('the usage of a change is the difference of its images', () => {
    const before = counters({ rpm: 1_000, tpm: 7_000 }, 5, 1);
    const after = counters({ rpm: 3_000, tpm: 2_000 }, 6, 4);
    expect(usageOf({ before, after })).toEqual({
      consumedMilli: new Map([
        ['rpm', 2_000],
        ['tpm', -5_000],
      ]),
      acquires: 1,
      expired: 3,
    });
  });

  test('the usage of a change is exact beyond 2^53', () => {
    const [before, after] = [counters({ tpm: 2n ** 60n }), counters({ tpm: 2n ** 60n + 1n })];
    expect(usageOf({ before, after }).consumedMilli).toEqual(new Map([['tpm', 1]]));
  });

  test("a new bucket's usage is everything that it has counted, even if that was given back", () => {
    const after = counters({ rpm: -1_000 }, 1);
    expect(usageOf({ before: null, after })).toMatchObject({ consumedMilli: new Map([['rpm', -1_000]]), acquires: 1 });
  });

  test('a change by clients of another layout or by a migration has no usage', () => {
    const after = { ...counters({ rpm: 9_000 }, 3), foreign: true } as const;
    expect(usageOf({ before: null, after })).toEqual(NO_USAGE);
    expect(usageOf({ before: counters({ rpm: 1_000 }), after })).toEqual(NO_USAGE);
  });

  test('a removed bucket has no usage, because its counts were counted before', () => {
    expect(usageOf({ before: counters({ rpm: 5_000 }, 3), after: null })).toBe(NO_USAGE);
  });

  test('a merge has no usage: a shard takes over what another counted', () => {
    const before = counters({ rpm: 5_000 }, 3, 0, 2);
    const after = counters({ rpm: 9_000 }, 7, 1, 1);
    expect(usageOf({ before, after })).toBe(NO_USAGE);
  });

  test('a write that also splits the shard counts its usage', () => {
    const [before, after] = [counters({ rpm: 5_000 }, 3, 0, 1), counters({ rpm: 6_000 }, 4, 0, 2)];
    expect(usageOf({ before, after })).toMatchObject({ acquires: 1 });
  });
});

describe('usage sums', () => {
  test('sums are kept per kind of window, each by the time of the change', () => {
    const midnight = Date.UTC(2027, 1, 1);
    const sums = foldUsage([change(1, { atMs: midnight - 1 }), change(2, { atMs: midnight })]);
    expect(sums.map(({ window, startMs, parts }) => [window, new Date(startMs).toISOString(), parts.length])).toEqual([
      ['hourly', '2027-01-31T23:00:00.000Z', 1],
      ['daily', '2027-01-31T00:00:00.000Z', 1],
      ['monthly', '2027-01-01T00:00:00.000Z', 1],
      ['hourly', '2027-02-01T00:00:00.000Z', 1],
      ['daily', '2027-02-01T00:00:00.000Z', 1],
      ['monthly', '2027-02-01T00:00:00.000Z', 1],
    ]);
  });

  test('per-call limits and shards are summed under the plain resource, each with its own position', () => {
    const resource = 'gpt-4~AbCd1234';
    const keys = [
      { entityId: 'user-1', resource: 'gpt-4', shard: 0 },
      { entityId: 'user-1', resource, shard: 0 },
      { entityId: 'user-1', resource: 'gpt-4', shard: 12 },
    ];
    const [hour] = foldUsage(keys.map((key, at) => change(at + 1, { key })));
    expect(hour).toMatchObject({ resource: 'gpt-4', window: 'hourly' });
    expect([...spansOf(hour!.parts).keys()]).toEqual(['q_0', 'q_0~AbCd1234', 'q_12']);
    expect(totalOf(hour!.parts)).toMatchObject({ consumedMilli: new Map([['rpm', 6_000]]), acquires: 3 });
  });

  test('sums continue for a bucket that expired and was created again', () => {
    const first = counters({ rpm: 5_000 }, 3);
    const [hour] = foldUsage([
      change(1, { event: 'INSERT', before: null, after: first }),
      change(2, { event: 'REMOVE', expired: true, before: first, after: null }),
      change(3, { event: 'INSERT', before: null, after: counters({ rpm: 2_000 }, 1) }),
      change(4, { before: counters({ rpm: 2_000 }, 1), after: counters({ rpm: 3_000 }, 2) }),
    ]);
    expect(totalOf(hour!.parts)).toMatchObject({ consumedMilli: new Map([['rpm', 8_000]]), acquires: 5 });
  });

  test('sums leave out changes without usage, and replays', () => {
    const idle = change(4, { before: counters({ rpm: 9 }, 2), after: counters({ rpm: 9 }, 2) });
    const [hour] = foldUsage([change(1), change(2), change(2), change(1), change(3), idle]);
    expect(hour?.parts.map(({ sequence }) => sequence)).toEqual([1, 2, 3].map(sequenceOf));
    expect(foldUsage([idle])).toEqual([]);
  });

  test('parts of more bucket shards than one condition can name are written in groups', () => {
    const changes = [0, 1, 2, 3, 4, 1].map((shard, at) =>
      change(at, { key: { entityId: 'user-1', resource: 'gpt-4', shard } }),
    );
    const [hour] = foldUsage(changes);
    const groups = inGroupsOf(2, hour!.parts);
    expect(groups.map((parts) => [...spansOf(parts).keys()])).toEqual([['q_0', 'q_1'], ['q_2', 'q_3'], ['q_4']]);
    expect(groups.flat()).toHaveLength(6);
    expect(inGroupsOf(5, hour!.parts)).toEqual([hour!.parts]);
  });
});

/** A simple model of a table's usage records and their conditional write. */
class Ledger {
  readonly records = new Map<string, UsageCounts>();
  readonly #marks = new Map<string, string>();

  add({ ns, entityId, resource, window, startMs, parts }: UsageSum): void {
    const id = [ns, entityId, resource, window, startMs].join(' ');
    const markOf = (counted: string): string | undefined => this.#marks.get(`${id} ${counted}`);
    for (let left = parts; left.length > 0; left = newerParts(left, markOf)) {
      const spans = [...spansOf(left)];
      if (spans.some(([counted, { first }]) => (markOf(counted) ?? '') >= first)) continue;
      this.records.set(id, addUsage(this.records.get(id) ?? NO_USAGE, totalOf(left)));
      for (const [counted, { last }] of spans) this.#marks.set(`${id} ${counted}`, last);
      return;
    }
  }
}

/** The expected records, computed without folding. */
function plainSums(changes: readonly BucketChange[]): Map<string, UsageCounts> {
  const sums = new Map<string, UsageCounts>();
  for (const one of changes) {
    const counts = usageOf(one);
    const isIdle = counts.consumedMilli.size === 0 && counts.acquires === 0 && counts.expired === 0;
    for (const window of isIdle ? [] : USAGE_WINDOWS) {
      const { entityId, resource } = one.key;
      const id = [one.ns, entityId, resource.replace(/~.*/, ''), window, windowStart(window, one.atMs)].join(' ');
      sums.set(id, addUsage(sums.get(id) ?? NO_USAGE, counts));
    }
  }
  return sums;
}

/** Changes of a few bucket shards in the order of one stream. Times may go back, as those of several writers do. */
const streams = fc
  .array(
    fc.record({
      shard: fc.constantFrom('gpt-4 0', 'gpt-4 1', 'gpt-4~AbCd1234 0', 'gpt-5 0'),
      entityId: fc.constantFrom('a', 'b'),
      hour: fc.integer({ min: 0, max: 3 }),
      rpm: fc.integer({ min: -3, max: 9 }),
      tpm: fc.bigInt(-(2n ** 60n), 2n ** 60n),
      acquires: fc.integer({ min: 0, max: 2 }),
      fate: fc.constantFrom('write', 'write', 'write', 'write', 'remove', 'merge'),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((steps) => {
    const state = new Map<string, ShardCounters>();
    return steps.map((step, at): BucketChange => {
      const [resource = '', shard] = step.shard.split(' ');
      const key = { entityId: step.entityId, resource, shard: Number(shard) };
      const id = `${step.entityId} ${step.shard}`;
      const before = state.get(id) ?? null;
      const rpm = BigInt(before?.consumedMilli.get('rpm') ?? 0) + BigInt(step.rpm);
      const tpm = BigInt(before?.consumedMilli.get('tpm') ?? 0) + step.tpm;
      const shardCount = step.fate === 'merge' ? 1 : 2;
      const after =
        step.fate === 'remove' ? null : counters({ rpm, tpm }, (before?.acquires ?? 0) + step.acquires, 0, shardCount);
      if (after === null) state.delete(id);
      else state.set(id, after);
      return change(at + 1, { key, before, after, atMs: START_MS + step.hour * HOUR_MS });
    });
  });

/** One delivery: how far back it starts, how many changes it has, which of them twice, and which writes fail. */
const deliveries = fc.array(
  fc.record({
    back: fc.integer({ min: 0, max: 12 }),
    length: fc.integer({ min: 1, max: 15 }),
    doubled: fc.array(fc.nat(20), { maxLength: 4 }),
    failed: fc.option(fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }), { nil: null }),
  }),
  { minLength: 1, maxLength: 30 },
);

test('any batches with duplicates, replays, failed writes and overlapping restarts give the same sums', () => {
  fc.assert(
    fc.property(streams, deliveries, (changes, plan) => {
      const ledger = new Ledger();
      // What was delivered and written; a restart may start anywhere before it.
      let done = 0;
      const deliver = (from: number, to: number, doubled: readonly number[], failed: readonly boolean[] | null) => {
        const batch = changes.slice(from, to).flatMap((one, at) => (doubled.includes(at) ? [one, one] : [one]));
        const sums = foldUsage(batch);
        const written = sums.filter((_, at) => failed === null || failed[at % failed.length] !== true);
        for (const sum of written) ledger.add(sum);
        if (written.length === sums.length) done = Math.max(done, to);
      };
      for (const { back, length, doubled, failed } of plan) {
        const from = Math.max(0, done - back);
        deliver(from, Math.min(changes.length, from + length), doubled, failed);
      }
      while (done < changes.length) deliver(done, done + 7, [], null);
      deliver(0, changes.length, [], null);
      expect(ledger.records).toEqual(plainSums(changes));
    }),
    { numRuns: 500 },
  );
});

test('changes of a stream that was enabled later are newer, whatever their numbers', () => {
  const old = change(999, { sequence: `2027-01-01T00:00:00.000/${'9'.repeat(40)}` });
  const fresh = change(1, { sequence: `2027-01-02T00:00:00.000/${'0'.repeat(40)}` });
  const [{ parts }] = foldUsage([fresh]) as [UsageSum];
  expect(newerParts(parts, () => old.sequence)).toEqual(parts);
});
