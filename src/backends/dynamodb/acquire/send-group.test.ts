import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { stopDeadlines } from '../../../../tests/support/models/hand-time.js';
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
  withHolders,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { openProcess, type Process, tapped } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import { fault, type FaultProxy, findEngine, startFaultProxy } from '../../../testing/dynamodb/index.js';
import type { ShardImage } from '../table/items.js';
import { expiresTooEarly } from '../bucket/shard-write.js';
import type { Table } from '../client/requests.js';
import { sdkTransport } from '../client/sdk-transport.js';
import { quickRandom } from '../../../../tests/support/dynamodb/quick-random.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const RPM = Limit.perMinute('rpm', 60);
const DAILY = Limit.perDay('daily', 100);
const SLOTS = Limit.concurrent('slots', 3);
const DAY_SEC = 86_400;

describe.skipIf(found.status === 'unavailable')(`group writes${reason}`, () => {
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

  const freshNs = (): string => `write${(namespaces += 1)}`;
  const take = askEntry([RPM], { rpm: 1_000 });
  const half = withTokens(imageOf([RPM], { baseMs: NOW_MS }), 30_000);

  /** A stored shard, and a process behind the proxy that has the image `seen` cached. */
  async function shard(
    image: ShardImage | null,
    seen: ShardImage | null = image,
  ): Promise<Process & { readonly ns: string }> {
    const ns = freshNs();
    if (image !== null) await engine.put(ns, image);
    const process = openProcess(table, ns);
    if (seen !== null) process.shard.see(seen, NOW_MS);
    return { ...process, ns };
  }

  describe('a bucket that does not exist', () => {
    test('the first take creates a bucket in one request', async () => {
      const { submit, ns, shard: queue } = await shard(null);
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      expect(proxy.requests.byOperation()).toEqual({ PutItem: 1 });
      const stored = (await engine.read(ns, KEY))!;
      expect(stored).toMatchObject({
        baseMs: NOW_MS,
        acquires: 1,
        limits: [{ tokensMilli: 59_000, consumedMilli: 1_000 }],
      });
      expect({ ...queue.image, bytes: 0 }).toEqual({ ...stored, bytes: 0 });
    });

    test('two concurrent takes create a bucket once', async () => {
      const one = await shard(null);
      const other = openProcess(table, one.ns);
      expect(await Promise.all([one.submit(take), other.submit(take)])).toMatchObject([
        { kind: 'granted' },
        { kind: 'granted' },
      ]);
      expect(await engine.read(one.ns, KEY)).toMatchObject({ acquires: 2, limits: [{ tokensMilli: 58_000 }] });
      expect(proxy.requests.byOperation()).toEqual({ PutItem: 2, UpdateItem: 1 });
    });

    test('a take creates a bucket again if it was deleted while its image was cached', async () => {
      const { submit, ns } = await shard(half);
      await engine.delete(ns, KEY);
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      expect(await engine.read(ns, KEY)).toMatchObject({ acquires: 1, limits: [{ tokensMilli: 59_000 }] });
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1, PutItem: 1 });
    });

    test('a take finds a bucket that was cached as absent', async () => {
      const { submit, ns, shard: queue } = await shard(half, null);
      queue.see(null, NOW_MS);
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      expect(await engine.read(ns, KEY)).toMatchObject({ limits: [{ tokensMilli: 29_000 }] });
    });

    test('a denial does not create a bucket: it is read once, and its absence is cached', async () => {
      const { submit, ns } = await shard(null);
      const impossible = askEntry([RPM], { rpm: 61_000 });
      const tuning = { denyCacheMs: 1_000 };
      expect(await submit(impossible, { tuning })).toMatchObject({ kind: 'denied' });
      expect(await submit(impossible, { tuning })).toMatchObject({ kind: 'denied' });
      expect(proxy.requests.byOperation()).toEqual({ GetItem: 1 });
      expect(await engine.read(ns, KEY)).toBeNull();
    });

    test('an ask is denied by a stored bucket that the process has not cached', async () => {
      const { submit } = await shard(
        imageOf([RPM, Limit.perMinute('tpm', 5)], { version: { sequence: 9, openedAtMs: 0 } }),
        null,
      );
      const ask = askEntry([RPM], { rpm: 61_000 });
      expect(await submit(ask)).toMatchObject({ kind: 'denied', remembered: false, answer: { configIsOlder: true } });
    });

    test('a refund creates a full bucket and is counted, and a debit creates one with less', async () => {
      const [refunded, debited] = [await shard(null), await shard(null)];
      expect(await refunded.submit(changeEntry([RPM], { rpm: -2_000 }))).toEqual({ kind: 'done', holderLost: false });
      expect(await engine.read(refunded.ns, KEY)).toMatchObject({ limits: [{ consumedMilli: -2_000 }] });
      expect(await refunded.submit(askEntry([RPM], { rpm: 60_001 }))).toMatchObject({ kind: 'denied' });
      expect(await debited.submit(changeEntry([RPM], { rpm: 70_000 }))).toEqual({ kind: 'done', holderLost: false });
      expect(await engine.read(debited.ns, KEY)).toMatchObject({ limits: [{ tokensMilli: -10_000 }] });
    });

    test('a shard that was never split off is answered as no-shard and is not created', async () => {
      const ns = freshNs();
      const process = openProcess(table, ns, 1);
      expect(await process.together([take, extendEntry('lease', NOW_MS + 1)])).toEqual([
        { kind: 'no-shard' },
        { kind: 'no-shard' },
      ]);
      expect(await engine.read(ns, { ...KEY, shard: 1 })).toBeNull();
    });

    test('extending a lease of a bucket that does not exist is answered as no-shard', async () => {
      const { submit, ns } = await shard(null);
      expect(await submit(extendEntry('lease', NOW_MS + 1))).toEqual({ kind: 'no-shard' });
      expect(await engine.read(ns, KEY)).toBeNull();
    });
  });

  describe('stale images', () => {
    test('a group on a stale image takes what is stored with a second write, and denies the rest with exact verdicts', async () => {
      const { together, ns } = await shard(withTokens(half, 2_500), half);
      const told = await together([take, askEntry([RPM], { rpm: 2_000 }), take]);
      expect(told).toMatchObject([
        { kind: 'granted' },
        { kind: 'denied', remembered: false, answer: { verdicts: [{ effectiveMilli: 1_500, waitMs: 500 }] } },
        { kind: 'granted' },
      ]);
      expect(await engine.read(ns, KEY)).toMatchObject({ acquires: 5, limits: [{ tokensMilli: 500 }] });
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 2 });
    });

    test('grants on a stale image show the balances that the store had', async () => {
      const { together } = await shard(withTokens(half, 20_000), half);
      expect(await together([take, { ...take }])).toMatchObject([
        { answer: { verdicts: [{ effectiveMilli: 20_000, requestedMilli: 1_000 }] } },
        { answer: { verdicts: [{ effectiveMilli: 19_000 }] } },
      ]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1 });
    });

    test('a take on a stale image from a bucket that has filled up loses and creates no token', async () => {
      const { submit, ns } = await shard(withTokens(imageOf([RPM]), 59_000), withTokens(imageOf([RPM]), -50_000));
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      // A minute after its base the bucket is full: a minute's credit is already in the balance.
      expect(await engine.read(ns, KEY)).toMatchObject({ limits: [{ tokensMilli: -1_000 }] });
    });

    test('a take on a stale image is judged by rules that another process has settled meanwhile', async () => {
      const settled = {
        ...withTokens(imageOf([Limit.perMinute('rpm', 5)], { baseMs: NOW_MS + 1 }), 500),
        version: { sequence: 2, openedAtMs: 0 },
      };
      const { submit } = await shard(settled, half);
      expect(await submit(take)).toMatchObject({ kind: 'denied', answer: { configIsOlder: true } });
    });

    test('a group on a stale image finds a lease that another process granted, and that one does not exist', async () => {
      const held = withHolders(imageOf([SLOTS], { baseMs: NOW_MS }), { theirs: { slots: [amount('slots', 0)] } });
      const { together } = await shard(held, imageOf([SLOTS], { baseMs: NOW_MS }));
      const ask = askEntry([SLOTS], { slots: 0 }, { leaseId: 'theirs', holder: holderOf() });
      expect(await together([ask, extendEntry('gone', NOW_MS + 5)])).toMatchObject([
        { kind: 'id-taken' },
        { kind: 'extended', found: false },
      ]);
    });

    test('an adjustment that leaves its holder unchanged says whether the holder still exists', async () => {
      const { submit, ns } = await shard(half, withHolders(half, { lease: {} }));
      const adjust = changeEntry([RPM], { rpm: 1_000 }, { leaseId: 'lease', holder: 'keep' });
      expect(await submit(adjust)).toEqual({ kind: 'done', holderLost: true });
      expect(await engine.read(ns, KEY)).toMatchObject({ limits: [{ tokensMilli: 29_000 }] });
    });
  });

  describe('other writers', () => {
    const tuning = { maxRetries: 2 };
    const debit = changeEntry([RPM], { rpm: 3_000 });

    test('asks give up after maxRetries attempts, and corrections are retried until they are written', async () => {
      const { together, ns } = await shard(half);
      proxy.inject(fault.transactionConflict(), { operations: ['UpdateItem'], times: 5 });
      expect(await together([take, debit, take], { tuning })).toEqual([
        { kind: 'contended' },
        { kind: 'done', holderLost: false },
        { kind: 'contended' },
      ]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 6 });
      expect(await engine.read(ns, KEY)).toMatchObject({ acquires: 3, limits: [{ tokensMilli: 27_000 }] });
    });

    test('a group whose asks have all given up sends nothing more', async () => {
      const { together } = await shard(half);
      proxy.inject(fault.transactionConflict(), { operations: ['UpdateItem'] });
      expect(await together([take], { tuning })).toEqual([{ kind: 'contended' }]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 3 });
    });

    test('asks that always find another base give up, and have taken nothing', async () => {
      const ns = freshNs();
      await engine.put(ns, half);
      const other = openProcess(engine.table, ns);
      let sequence = 1;
      const overtaken = tapped(table, async (operation, forward) => {
        sequence += 1;
        const daily = Limit.perDay('daily', sequence);
        if (operation === 'UpdateItem')
          await other.submit(askEntry([RPM, daily], {}, { version: { sequence, openedAtMs: 0 } }));
        return forward();
      });
      const { together } = openProcess(overtaken, ns);
      expect(await together([take], { tuning })).toEqual([{ kind: 'contended' }]);
      expect((await engine.read(ns, KEY))?.limits.find(({ limit }) => limit.name === 'rpm')?.consumedMilli).toBe(0);
    });

    test('corrections are rejected as contended when their deadline has passed', async () => {
      const { together } = await shard(half);
      proxy.inject(fault.transactionConflict(), { operations: ['UpdateItem'] });
      expect(await together([debit], { tuning, timeoutMs: 20 })).toMatchObject([
        { error: { code: 'backend.unavailable' } },
      ]);
    });

    test('a throttled key is marked as hot, asks are rejected as throttled, and corrections are retried', async () => {
      const { together, shard: queue } = await shard(half);
      proxy.inject(fault.throttle(), { operations: ['UpdateItem'], times: 4 });
      expect(await together([take, debit], { tuning })).toMatchObject([
        { kind: 'rejected', error: { code: 'backend.unavailable', kind: 'throttled' } },
        { kind: 'done' },
      ]);
      expect(queue.pressure.wantsSplit(NOW_MS)).toBe(true);
    });

    test('a throttled group is rejected as throttled, not as contended, when its deadline has passed', async () => {
      using time = stopDeadlines();
      const throttling = tapped(table, async () => {
        time.pass(60);
        throw Object.assign(new Error('too much'), { name: 'ThrottlingException' });
      });
      const slow = openProcess(throttling, freshNs());
      expect(await slow.together([take], { timeoutMs: 100 })).toMatchObject([
        { kind: 'rejected', error: { kind: 'throttled' } },
      ]);
    });
  });

  test('every entry is rejected if the process has no permission to write', async () => {
    const { together } = await shard(half);
    proxy.inject(fault.accessDenied(), { operations: ['UpdateItem'] });
    const denied = { kind: 'rejected', error: { code: 'backend.denied' } };
    expect(await together([take, changeEntry([RPM], { rpm: 1 })])).toMatchObject([denied, denied]);
  });

  describe('the ttl of a bucket', () => {
    const empty = withTokens(imageOf([RPM], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + 7_200 }), 0);

    test('a settlement extends the ttl as far as the new rules need, even if no ask is granted', async () => {
      const { together, ns } = await shard(empty);
      const slower = askEntry([Limit.perDay('rpm', 60)], { rpm: 60_000 }, { version: { sequence: 2, openedAtMs: 0 } });
      expect(await together([slower])).toMatchObject([{ kind: 'denied' }]);
      const after = (await engine.read(ns, KEY))!;
      expect(after.version.sequence).toBe(2);
      expect(expiresTooEarly(after)).toBe(false);
    });

    test('a debit extends the ttl for a debt of other processes that its image lacks', async () => {
      const ttlSec = NOW_MS / 1_000 + 8 * DAY_SEC;
      const seen = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec }), 0);
      const { together, ns } = await shard(withTokens(seen, -900_000), seen);
      expect(await together([changeEntry([DAILY], { daily: 100_000 })])).toMatchObject([{ kind: 'done' }]);
      const after = (await engine.read(ns, KEY))!;
      expect(after.limits[0]!.tokensMilli).toBe(-1_000_000);
      expect(expiresTooEarly(after)).toBe(false);
    });

    test('a debit keeps a later ttl of another process that its image lacks', async () => {
      const short = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + DAY_SEC }), 50_000);
      const debt = { ...withTokens(short, -2_000_000), ttlSec: NOW_MS / 1_000 + 30 * DAY_SEC };
      const { together, ns } = await shard(debt, short);
      await together([changeEntry([DAILY], { daily: 1_000 })]);
      expect(expiresTooEarly((await engine.read(ns, KEY))!)).toBe(false);
    });

    test('a settlement extends the ttl for a debt of other processes that its image lacks', async () => {
      const seen = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + 8 * DAY_SEC }), 50_000);
      const debt = { ...withTokens(seen, -2_000_000), ttlSec: NOW_MS / 1_000 + 30 * DAY_SEC };
      const { together, ns } = await shard(debt, seen);
      const slower = askEntry(
        [Limit.perDay('daily', 10)],
        { daily: 1_000 },
        { version: { sequence: 2, openedAtMs: 0 } },
      );
      expect(await together([slower])).toMatchObject([{ kind: 'denied' }]);
      const after = (await engine.read(ns, KEY))!;
      expect(after.version.sequence).toBe(2);
      expect(expiresTooEarly(after)).toBe(false);
    });

    test('a take that renews the ttl needs one write', async () => {
      const { together } = await shard(withTokens(imageOf([DAILY], { baseMs: NOW_MS }), 50_000));
      proxy.requests.clear();
      await together([askEntry([DAILY], { daily: 1_000 })]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1 });
    });

    test('the write that causes a debt extends the ttl itself, so a crash after it leaves no debt that expires too early', async () => {
      const seen = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + 8 * DAY_SEC }), 0);
      const { together, ns } = await shard(withTokens(seen, -700_000), seen);
      let landed = 0;
      proxy.inject(fault.serverError(), { operations: ['UpdateItem'], when: () => (landed += 1) > 2 });
      expect(await together([changeEntry([DAILY], { daily: 100_000 })])).toMatchObject([{ kind: 'done' }]);
      expect(expiresTooEarly((await engine.read(ns, KEY))!)).toBe(false);
    });

    test('a bucket without a ttl gets one after a minute without writes, and not before', async () => {
      const unused = buildLeaseId(NOW_MS - 60_000, 0);
      const merged = { ...withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec: null }), -900_000) };
      const ask = changeEntry([DAILY], { daily: 1_000 });
      const idle = await shard({ ...merged, writeId: unused });
      await idle.together([ask]);
      const after = (await engine.read(idle.ns, KEY))!;
      expect(after.ttlSec).toBeGreaterThan(NOW_MS / 1_000 + 10 * DAY_SEC);
      expect(expiresTooEarly(after)).toBe(false);
      const busy = await shard({ ...merged, writeId: buildLeaseId(NOW_MS - 59_999, 0) });
      await busy.together([ask]);
      expect((await engine.read(busy.ns, KEY))!.ttlSec).toBeNull();
    });
  });
});
