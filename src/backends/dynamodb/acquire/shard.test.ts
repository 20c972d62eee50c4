import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  clientOf,
  type ShardEngine,
  startShardEngine,
  TABLE_NAME,
} from '../../../../tests/support/dynamodb/shard/shard-engine.js';
import {
  amount,
  askEntry,
  changeEntry,
  extendEntry,
  holderOf,
  imageOf,
  KEY,
  NOW_MS,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { openProcess, type Process, TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import {
  fault,
  type FaultProxy,
  findEngine,
  type InjectedFault,
  startFaultProxy,
} from '../../../testing/dynamodb/index.js';
import { deadlineIn } from '../../../machine-time.js';
import { DynamoDBExecutor } from '../expressions/dynamodb-executor.js';
import type { ShardImage } from '../table/items.js';
import type { Table } from '../client/requests.js';
import { sdkTransport } from '../client/sdk-transport.js';
import { BucketShards } from './bucket-shards.js';
import { takeLevel } from './take-level.js';
import { quickRandom } from '../../../../tests/support/dynamodb/quick-random.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const RPM = Limit.perMinute('rpm', 60);
const YOUNG = { ...TUNING, denyCacheMs: 1_000 };

describe.skipIf(found.status === 'unavailable')(`the queue of a shard${reason}`, () => {
  let engine: ShardEngine;
  let proxy: FaultProxy;
  let client: DynamoDBClient;
  let table: Table;
  let namespaces = 0;

  beforeAll(async () => {
    engine = await startShardEngine();
    proxy = await startFaultProxy(engine.engine.endpoint);
    client = clientOf(engine.engine, proxy.endpoint);
    table = { name: TABLE_NAME, transport: sdkTransport({ client }), random: quickRandom };
  });
  afterEach(() => {
    proxy.heal();
    proxy.requests.clear();
  });
  afterAll(async () => {
    client?.destroy();
    await proxy?.stop();
    await engine?.[Symbol.asyncDispose]();
  });

  const take = (milli = 1_000) => askEntry([RPM], { rpm: milli });

  async function shard(image: ShardImage | null): Promise<Process & { readonly ns: string }> {
    const ns = `line${(namespaces += 1)}`;
    if (image !== null) await engine.put(ns, image);
    const process = openProcess(table, ns);
    if (image !== null) process.shard.see(image, NOW_MS);
    return { ...process, ns };
  }

  /** Starts a write that stays under way until the fault is released. */
  async function underWay(
    process: Process,
  ): Promise<{ readonly first: Promise<unknown>; readonly held: InjectedFault }> {
    const held = proxy.inject(fault.holdAnswer(), { operations: ['UpdateItem', 'PutItem'], times: 1 });
    const first = process.submit(take());
    await held.untilFired();
    return { first, held };
  }

  const half = withTokens(imageOf([RPM], { baseMs: NOW_MS }), 30_000);

  test('an idle shard writes at once, and everything that arrives meanwhile goes into the next write', async () => {
    const process = await shard(half);
    const { first, held } = await underWay(process);
    const rest = [take(2_000), changeEntry([RPM], { rpm: 5_000 }), take(3_000), changeEntry([RPM], { rpm: -1_000 })];
    const waiting = rest.map(async (entry) => process.submit(entry));
    expect(proxy.requests.count()).toBe(1);
    held.release();
    await first;
    expect(await Promise.all(waiting)).toMatchObject([
      { kind: 'granted' },
      { kind: 'done' },
      { kind: 'granted' },
      { kind: 'done' },
    ]);
    expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 2 });
    expect(await engine.read(process.ns, KEY)).toMatchObject({
      acquires: 6,
      limits: [{ tokensMilli: 20_000, consumedMilli: 10_000 }],
    });
  });

  test('a group serves asks in the order of their arrival, skips those that do not fit, and counts debits after them', async () => {
    const process = await shard(withTokens(half, 6_000));
    const { first, held } = await underWay(process);
    const rest = [take(2_000), take(4_000), changeEntry([RPM], { rpm: 9_000 }), take(3_000), take(1)];
    const waiting = rest.map(async (entry) => process.submit(entry));
    held.release();
    await first;
    const told = await Promise.all(waiting);
    expect(told.map(({ kind }) => kind)).toEqual(['granted', 'denied', 'done', 'granted', 'denied']);
    expect(told[1]).toMatchObject({ answer: { verdicts: [{ effectiveMilli: 3_000, waitMs: 1_000 }] } });
    expect(told[4]).toMatchObject({ answer: { verdicts: [{ effectiveMilli: 0, waitMs: 1 }] } });
    expect(await engine.read(process.ns, KEY)).toMatchObject({ limits: [{ tokensMilli: -9_000 }] });
  });

  test('a group uses the latest time of its entries', async () => {
    const process = await shard(withTokens(half, 1_000));
    const { first, held } = await underWay(process);
    const late = process.submit({ ...take(2_000), nowMs: NOW_MS + 2_000 });
    const early = process.submit(take(0));
    held.release();
    await first;
    expect(await late).toMatchObject({ kind: 'granted', answer: { verdicts: [{ effectiveMilli: 2_000 }] } });
    expect(await early).toMatchObject({ kind: 'granted', answer: { verdicts: [{ effectiveMilli: 0 }] } });
  });

  test('256 asks that start together need at most 4 requests, even if the bucket does not exist yet', async () => {
    const { submit, ns } = await shard(null);
    const limit = Limit.perMinute('rpm', 200);
    const told = await Promise.all(Array.from({ length: 256 }, async () => submit(askEntry([limit], { rpm: 1_000 }))));
    expect(told.map(({ kind }) => kind)).toEqual([
      ...Array<string>(200).fill('granted'),
      ...Array<string>(56).fill('denied'),
    ]);
    expect(proxy.requests.count()).toBeLessThanOrEqual(4);
    expect(await engine.read(ns, KEY)).toMatchObject({ acquires: 200, limits: [{ tokensMilli: 0 }] });
  });

  test('every one of 200,000 queued asks is answered, including those that must wait for the next write', async () => {
    // The first write has room for 80 holders.
    const limit = Limit.perMinute('rpm', 81);
    const { shard: queue } = await shard(null);
    const level = askEntry([limit], { rpm: 1_000 }, { holder: holderOf() });
    const kinds = new Map<string, number>();
    const count = ({ kind }: { readonly kind: string }): void => void kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const deadline = deadlineIn(60_000);
    let last: Promise<void> | null = null;
    for (let at = 0; at < 200_000; at++) {
      const entry = { ...level, leaseId: buildLeaseId(NOW_MS - at, 0.5) };
      last = Promise.resolve(queue.submit(entry, deadline, TUNING)).then(count);
    }
    await last;
    expect(Object.fromEntries(kinds)).toEqual({ granted: 81, denied: 199_919 });
  });

  test('asks of one turn of the event loop share one request on an idle shard', async () => {
    const { submit } = await shard(half);
    await Promise.all(Array.from({ length: 30 }, async () => submit(take())));
    expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1 });
  });

  test('more than 80 leases are granted in several writes, in the order of their arrival', async () => {
    const slots = Limit.concurrent('slots', 150);
    const { submit, ns } = await shard(null);
    const ids = Array.from({ length: 200 }, (_, at) => buildLeaseId(NOW_MS - at, 0.5));
    const holder = holderOf({ slots: [amount('slots', 1_000)] });
    const ask = (leaseId: string) => submit(askEntry([slots], { slots: 1_000 }, { leaseId, holder }));
    const told = await Promise.all(ids.map(ask));
    expect(told.map(({ kind }) => kind)).toEqual([
      ...Array<string>(150).fill('granted'),
      ...Array<string>(50).fill('denied'),
    ]);
    // 80 holders, then 70 and the denied asks.
    expect(proxy.requests.count()).toBeLessThanOrEqual(4);
    const held = await engine.read(ns, KEY);
    expect([...held!.holders.keys()].toSorted()).toEqual(ids.slice(0, 150).toSorted());

    proxy.requests.clear();
    const releases = ids
      .slice(0, 150)
      .map(async (leaseId) => submit(changeEntry([slots], {}, { leaseId, holder: 'release' })));
    expect((await Promise.all(releases)).every((result) => result.kind === 'done' && !result.holderLost)).toBe(true);
    expect(proxy.requests.count()).toBe(2);
    expect(await engine.read(ns, KEY)).toMatchObject({ holders: new Map(), limits: [{ tokensMilli: 150_000 }] });
  });

  test('several entries of one lease are executed one after another, in their order', async () => {
    const process = await shard(imageOf([RPM], { baseMs: NOW_MS }));
    const { first, held } = await underWay(process);
    const ask = askEntry(
      [RPM],
      { rpm: 1_000 },
      { leaseId: 'lease', holder: holderOf({ rates: [amount('rpm', 1_000)] }) },
    );
    const waiting = [
      ask,
      changeEntry([RPM], { rpm: 4_000 }, { leaseId: 'lease', holder: 'keep', totals: { rpm: 5_000 } }),
      extendEntry('lease', NOW_MS + 90_000),
      changeEntry([RPM], { rpm: -5_000 }, { leaseId: 'lease', holder: 'release', totals: { rpm: 0 } }),
      extendEntry('lease', NOW_MS + 95_000),
    ].map(async (entry) => process.submit(entry));
    held.release();
    await first;
    expect(await Promise.all(waiting)).toMatchObject([
      { kind: 'granted' },
      { kind: 'done', holderLost: false },
      { kind: 'extended', found: true },
      { kind: 'done', holderLost: false },
      { kind: 'extended', found: false },
    ]);
    expect(await engine.read(process.ns, KEY)).toMatchObject({ holders: new Map(), limits: [{ tokensMilli: 59_000 }] });
  });

  describe('aborted and late entries', () => {
    test('an entry that is aborted before it is sent takes nothing', async () => {
      const process = await shard(half);
      const { first, held } = await underWay(process);
      const leaving = new AbortController();
      const [left, stays] = [process.submit(take(5_000), { signal: leaving.signal }), process.submit(take())];
      leaving.abort(new Error('aborted'));
      held.release();
      await first;
      await expect(left).rejects.toThrow('aborted');
      expect(await stays).toMatchObject({ kind: 'granted' });
      expect(await engine.read(process.ns, KEY)).toMatchObject({ acquires: 5, limits: [{ tokensMilli: 28_000 }] });
    });

    test('an entry whose deadline passes before it is sent is rejected as a timeout without a request', async () => {
      const process = await shard(half);
      const { first, held } = await underWay(process);
      const late = process.submit(take(5_000), { timeoutMs: 0 });
      held.release();
      await first;
      await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'timeout' });
      expect(proxy.requests.count()).toBe(1);
    });
  });

  test('the queue continues after a failed group, from the stored item', async () => {
    const process = await shard(half);
    proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem'], times: 3 });
    await expect(process.submit(take())).rejects.toMatchObject({ kind: 'connection' });
    expect(process.shard.busy).toBe(false);
    expect(process.shard.image).toBeNull();
    expect(await process.submit(take())).toMatchObject({ kind: 'granted' });
    // The first write landed although its answers were lost, which is the strict side.
    expect(await engine.read(process.ns, KEY)).toMatchObject({ limits: [{ tokensMilli: 28_000 }] });
  });

  describe('the deny cache', () => {
    test('a young image denies without a request, with the exact wait of each ask', async () => {
      const { shard: queue } = await shard(null);
      queue.see(withTokens(half, 500), NOW_MS);
      expect(queue.recall(take(), YOUNG)).toMatchObject({
        kind: 'denied',
        remembered: true,
        answer: { verdicts: [{ waitMs: 500 }] },
      });
      expect(queue.recall(take(2_000), YOUNG)).toMatchObject({ answer: { verdicts: [{ waitMs: 1_500 }] } });
      expect(queue.recall({ ...take(), nowMs: NOW_MS + 499 }, YOUNG)).toMatchObject({
        answer: { verdicts: [{ waitMs: 1 }] },
      });
      expect(proxy.requests.count()).toBe(0);
    });

    test('the deny cache does not decide asks that fit, slots, or asks on an old image', async () => {
      const slots = Limit.concurrent('slots', 1);
      const { shard: queue } = await shard(null);
      queue.see(withTokens(imageOf([RPM, slots], { baseMs: NOW_MS }), 500, 0), NOW_MS);
      expect(queue.recall(take(500), YOUNG)).toBeNull();
      expect(queue.recall({ ...take(), nowMs: NOW_MS + 500 }, YOUNG)).toBeNull();
      expect(
        queue.recall(askEntry([RPM, slots], { slots: 1_000 }, { leaseId: 'a', holder: holderOf() }), YOUNG),
      ).toBeNull();
      expect(queue.recall(take(), TUNING)).toBeNull();
      expect(queue.recall({ ...take(30_000), nowMs: NOW_MS + 1_000 }, YOUNG)).toBeNull();
    });

    test('an image from before a refund denies nothing while the refund is under way', async () => {
      const process = await shard(withTokens(half, 500));
      const { first, held } = await underWay(process);
      const refund = process.submit(changeEntry([RPM], { rpm: -5_000 }));
      expect(process.shard.recall(take(), YOUNG)).toBeNull();
      const ask = process.submit(take(5_000), { tuning: YOUNG });
      held.release();
      await first;
      await refund;
      // The ask arrived after the refund but is planned first: the store denies it, not the cached image.
      expect(await ask).toMatchObject({ kind: 'denied', remembered: false });
      expect(process.shard.recall(take(5_000), YOUNG)).toBeNull();
      expect(await process.submit(take(5_000))).toMatchObject({ kind: 'granted' });
    });

    test('an image of any age denies an ask that can never fit', async () => {
      const { shard: queue } = await shard(null);
      queue.see(half, NOW_MS - 9e9);
      expect(queue.recall(take(60_001), TUNING)).toMatchObject({
        kind: 'denied',
        answer: { verdicts: [{ waitMs: null }] },
      });
    });
  });

  test('the pause before a write depends on the write rate that the callers of the write before it observed', async () => {
    const ns = `line${(namespaces += 1)}`;
    await engine.put(ns, half);
    const bucket = new BucketShards(new DynamoDBExecutor(table, ns), KEY, { paceAbove: 0.1, splitAbove: Infinity });
    const takeAt = async (nowMs: number) => {
      const call = { namespaceId: ns, nowMs, timeoutMs: 10_000, tuning: TUNING };
      return takeLevel({ call, bucket, level: take().level, leaseId: null, deadline: deadlineIn(10_000) });
    };
    await takeAt(NOW_MS);
    const { pressure } = bucket.shard(0);
    const rates: number[] = [];
    vi.spyOn(pressure, 'pauseMs').mockImplementation(() => {
      rates.push(pressure.unitsPerSec);
      return 0;
    });
    const held = proxy.inject(fault.holdAnswer(), { operations: ['UpdateItem'], times: 1 });
    const first = takeAt(NOW_MS + 2_000);
    await held.untilFired();
    const second = takeAt(NOW_MS + 2_000);
    held.release();
    expect(await Promise.all([first, second])).toMatchObject([{ kind: 'granted' }, { kind: 'granted' }]);
    // One write in two seconds.
    expect(rates).toEqual([0, 0.5]);
  });

  test('reading a shard does not replace the image while a write is under way', async () => {
    const process = await shard(half);
    const { first, held } = await underWay(process);
    const before = process.shard.image;
    const read = async () => process.shard.read(NOW_MS, performance.now() + 9_000);
    // The request has reached the proxy. The engine may take a moment to write it.
    await expect.poll(async () => (await read())?.limits[0]?.tokensMilli).toBe(29_000);
    expect(process.shard.image).toBe(before);
    expect(process.shard.image?.limits[0]?.tokensMilli).toBe(30_000);
    held.release();
    await first;
    expect(process.shard.image?.limits[0]?.tokensMilli).toBe(29_000);
  });
});
