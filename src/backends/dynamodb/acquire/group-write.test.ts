import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { stopDeadlines } from '../../../../tests/support/hand-time.js';
import { clientOf, type ShardEngine, startShardEngine, TABLE_NAME } from '../../../../tests/support/shard-engine.js';
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
} from '../../../../tests/support/shard-images.js';
import { openProcess, type Process, tapped } from '../../../../tests/support/shard-lines.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import { fault, type FaultProxy, findEngine, startFaultProxy } from '../../../testing/dynamodb/index.js';
import type { ShardImage } from '../table/items.js';
import { expiresTooEarly } from '../bucket/bucket-ttl.js';
import type { Table } from '../client/requests.js';
import { sdkTransport } from '../client/sdk-transport.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const RPM = Limit.perMinute('rpm', 60);
const DAILY = Limit.perDay('daily', 100);
const SLOTS = Limit.concurrent('slots', 3);
const DAY_SEC = 86_400;

describe.skipIf(found.status === 'unavailable')(`writing a group${reason}`, () => {
  let engine: ShardEngine;
  let proxy: FaultProxy;
  let client: DynamoDBClient;
  let table: Table;
  let namespaces = 0;

  beforeAll(async () => {
    engine = await startShardEngine();
    proxy = await startFaultProxy(engine.engine.endpoint);
    client = clientOf(engine.engine, proxy.endpoint);
    table = { name: TABLE_NAME, transport: sdkTransport({ client }), random: () => Math.random() / 100 };
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

  /** A shard that is stored so, and a process behind the proxy that remembers it so. */
  async function shard(
    image: ShardImage | null,
    seen: ShardImage | null = image,
  ): Promise<Process & { readonly ns: string }> {
    const ns = freshNs();
    if (image !== null) await engine.put(ns, image);
    const process = openProcess(table, ns);
    if (seen !== null) process.memory.keep(seen, NOW_MS);
    return { ...process, ns };
  }

  describe('of a bucket that is not there', () => {
    test('creates it with the first take, in one request', async () => {
      const { submit, ns, memory } = await shard(null);
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      expect(proxy.requests.byOperation()).toEqual({ PutItem: 1 });
      const stored = (await engine.read(ns, KEY))!;
      expect(stored).toMatchObject({
        baseMs: NOW_MS,
        acquires: 1,
        limits: [{ tokensMilli: 59_000, consumedMilli: 1_000 }],
      });
      expect({ ...memory.image, bytes: 0 }).toEqual({ ...stored, bytes: 0 });
    });

    test('creates it once for two that come at the same time', async () => {
      const one = await shard(null);
      const other = openProcess(table, one.ns);
      expect(await Promise.all([one.submit(take), other.submit(take)])).toMatchObject([
        { kind: 'granted' },
        { kind: 'granted' },
      ]);
      expect(await engine.read(one.ns, KEY)).toMatchObject({ acquires: 2, limits: [{ tokensMilli: 58_000 }] });
      expect(proxy.requests.byOperation()).toEqual({ PutItem: 2, UpdateItem: 1 });
    });

    test('creates it anew where it was deleted under a remembered image', async () => {
      const { submit, ns } = await shard(half);
      await engine.delete(ns, KEY);
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      expect(await engine.read(ns, KEY)).toMatchObject({ acquires: 1, limits: [{ tokensMilli: 59_000 }] });
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1, PutItem: 1 });
    });

    test('finds it again where it was thought to be missing', async () => {
      const { submit, ns, memory } = await shard(half, null);
      memory.keep(null, NOW_MS);
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      expect(await engine.read(ns, KEY)).toMatchObject({ limits: [{ tokensMilli: 29_000 }] });
    });

    test('does not create it to refuse somebody: it asks once, and remembers', async () => {
      const { submit, ns } = await shard(null);
      const impossible = askEntry([RPM], { rpm: 61_000 });
      const tuning = { denyCacheMs: 1_000 };
      expect(await submit(impossible, { tuning })).toMatchObject({ kind: 'denied' });
      expect(await submit(impossible, { tuning })).toMatchObject({ kind: 'denied' });
      expect(proxy.requests.byOperation()).toEqual({ GetItem: 1 });
      expect(await engine.read(ns, KEY)).toBeNull();
    });

    test('lets the store refuse by a bucket that nobody knew of', async () => {
      const { submit } = await shard(
        imageOf([RPM, Limit.perMinute('tpm', 5)], { version: { sequence: 9, openedAtMs: 0 } }),
        null,
      );
      const ask = askEntry([RPM], { rpm: 61_000 });
      expect(await submit(ask)).toMatchObject({ kind: 'denied', remembered: false, answer: { configIsOlder: true } });
    });

    test('creates it full for a refund, which counts all the same, and less for a debit', async () => {
      const [refunded, debited] = [await shard(null), await shard(null)];
      expect(await refunded.submit(changeEntry([RPM], { rpm: -2_000 }))).toEqual({ kind: 'done', holderLost: false });
      expect(await engine.read(refunded.ns, KEY)).toMatchObject({ limits: [{ consumedMilli: -2_000 }] });
      expect(await refunded.submit(askEntry([RPM], { rpm: 60_001 }))).toMatchObject({ kind: 'denied' });
      expect(await debited.submit(changeEntry([RPM], { rpm: 70_000 }))).toEqual({ kind: 'done', holderLost: false });
      expect(await engine.read(debited.ns, KEY)).toMatchObject({ limits: [{ tokensMilli: -10_000 }] });
    });

    test('says that a shard which was never split off is none, and creates nothing', async () => {
      const ns = freshNs();
      const process = openProcess(table, ns, 1);
      expect(await process.together([take, extendEntry('lease', NOW_MS + 1)])).toEqual([
        { kind: 'no-shard' },
        { kind: 'no-shard' },
      ]);
      expect(await engine.read(ns, { ...KEY, shard: 1 })).toBeNull();
    });

    test('has no lease to extend', async () => {
      const { submit, ns } = await shard(null);
      expect(await submit(extendEntry('lease', NOW_MS + 1))).toEqual({ kind: 'no-shard' });
      expect(await engine.read(ns, KEY)).toBeNull();
    });
  });

  describe('from a stale image', () => {
    test('takes what there is with a second write, and refuses the rest exactly', async () => {
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

    test('tells whoever is granted what the store really had', async () => {
      const { together } = await shard(withTokens(half, 20_000), half);
      expect(await together([take, { ...take }])).toMatchObject([
        { answer: { verdicts: [{ effectiveMilli: 20_000, requestedMilli: 1_000 }] } },
        { answer: { verdicts: [{ effectiveMilli: 19_000 }] } },
      ]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1 });
    });

    test('takes from a bucket that has filled up since, without losing or making a token', async () => {
      const { submit, ns } = await shard(withTokens(imageOf([RPM]), 59_000), withTokens(imageOf([RPM]), -50_000));
      expect(await submit(take)).toMatchObject({ kind: 'granted' });
      // A minute after its base it is full: a minute's credit is in the balance already.
      expect(await engine.read(ns, KEY)).toMatchObject({ limits: [{ tokensMilli: -1_000 }] });
    });

    test('follows rules that others have settled meanwhile', async () => {
      const settled = {
        ...withTokens(imageOf([Limit.perMinute('rpm', 5)], { baseMs: NOW_MS + 1 }), 500),
        version: { sequence: 2, openedAtMs: 0 },
      };
      const { submit } = await shard(settled, half);
      expect(await submit(take)).toMatchObject({ kind: 'denied', answer: { configIsOlder: true } });
    });

    test('knows a lease that others gave, and that one is gone', async () => {
      const held = withHolders(imageOf([SLOTS], { baseMs: NOW_MS }), { theirs: { slots: [amount('slots', 0)] } });
      const { together } = await shard(held, imageOf([SLOTS], { baseMs: NOW_MS }));
      const ask = askEntry([SLOTS], { slots: 0 }, { leaseId: 'theirs', holder: holderOf() });
      expect(await together([ask, extendEntry('gone', NOW_MS + 5)])).toMatchObject([
        { kind: 'id-taken' },
        { kind: 'extended', found: false },
      ]);
    });

    test('says of a lease that stays as it is whether it is still there', async () => {
      const { submit, ns } = await shard(half, withHolders(half, { lease: {} }));
      const adjust = changeEntry([RPM], { rpm: 1_000 }, { leaseId: 'lease', holder: 'keep' });
      expect(await submit(adjust)).toEqual({ kind: 'done', holderLost: true });
      expect(await engine.read(ns, KEY)).toMatchObject({ limits: [{ tokensMilli: 29_000 }] });
    });
  });

  describe('against other writers', () => {
    const tuning = { maxRetries: 2 };
    const debit = changeEntry([RPM], { rpm: 3_000 });

    test('gives asks up after so many attempts; corrections go on until they are written', async () => {
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

    test('sends nothing more once nobody is left', async () => {
      const { together } = await shard(half);
      proxy.inject(fault.transactionConflict(), { operations: ['UpdateItem'] });
      expect(await together([take], { tuning })).toEqual([{ kind: 'contended' }]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 3 });
    });

    test('gives asks up that always find another base, and have taken nothing', async () => {
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

    test('rejects corrections as contended when their time is over', async () => {
      const { together } = await shard(half);
      proxy.inject(fault.transactionConflict(), { operations: ['UpdateItem'] });
      expect(await together([debit], { tuning, timeoutMs: 20 })).toMatchObject([
        { error: { code: 'backend.unavailable' } },
      ]);
    });

    test('says that a throttled key is hot, rejects asks as throttled, and goes on with corrections', async () => {
      const { together, hot } = await shard(half);
      proxy.inject(fault.throttle(), { operations: ['UpdateItem'], times: 4 });
      expect(await together([take, debit], { tuning })).toMatchObject([
        { kind: 'rejected', error: { code: 'backend.unavailable', kind: 'throttled' } },
        { kind: 'done' },
      ]);
      expect(hot()).toBe(4);
    });

    test('rejects as throttled, not as contended, when the time is over', async () => {
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

  test('rejects everybody where it may not write', async () => {
    const { together } = await shard(half);
    proxy.inject(fault.accessDenied(), { operations: ['UpdateItem'] });
    const denied = { kind: 'rejected', error: { code: 'backend.denied' } };
    expect(await together([take, changeEntry([RPM], { rpm: 1 })])).toMatchObject([denied, denied]);
  });

  describe('keeps a bucket alive', () => {
    const empty = withTokens(imageOf([RPM], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + 7_200 }), 0);

    test('for as long as rules need that were just settled, also if nobody gets anything', async () => {
      const { together, ns } = await shard(empty);
      const slower = askEntry([Limit.perDay('rpm', 60)], { rpm: 60_000 }, { version: { sequence: 2, openedAtMs: 0 } });
      expect(await together([slower])).toMatchObject([{ kind: 'denied' }]);
      const after = (await engine.read(ns, KEY))!;
      expect(after.version.sequence).toBe(2);
      expect(expiresTooEarly(after)).toBe(false);
    });

    test('that others have brought deeper into debt than it knew', async () => {
      const ttlSec = NOW_MS / 1_000 + 8 * DAY_SEC;
      const seen = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec }), 0);
      const { together, ns } = await shard(withTokens(seen, -900_000), seen);
      expect(await together([changeEntry([DAILY], { daily: 100_000 })])).toMatchObject([{ kind: 'done' }]);
      const after = (await engine.read(ns, KEY))!;
      expect(after.limits[0]!.tokensMilli).toBe(-1_000_000);
      expect(expiresTooEarly(after)).toBe(false);
    });

    test('to which others have given a longer life than it knew', async () => {
      const short = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + DAY_SEC }), 50_000);
      const debt = { ...withTokens(short, -2_000_000), ttlSec: NOW_MS / 1_000 + 30 * DAY_SEC };
      const { together, ns } = await shard(debt, short);
      await together([changeEntry([DAILY], { daily: 1_000 })]);
      expect(expiresTooEarly((await engine.read(ns, KEY))!)).toBe(false);
    });

    test('whose rules it changes without knowing of the debt that others have made', async () => {
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

    test('without a word to anybody, and without asking for more than one write where one is enough', async () => {
      const { together } = await shard(withTokens(imageOf([DAILY], { baseMs: NOW_MS }), 50_000));
      proxy.requests.clear();
      await together([askEntry([DAILY], { daily: 1_000 })]);
      expect(proxy.requests.byOperation()).toEqual({ UpdateItem: 1 });
    });

    test('in the very write that needs it: a process that dies after it leaves no debt that is forgotten', async () => {
      const seen = withTokens(imageOf([DAILY], { baseMs: NOW_MS, ttlSec: NOW_MS / 1_000 + 8 * DAY_SEC }), 0);
      const { together, ns } = await shard(withTokens(seen, -700_000), seen);
      let landed = 0;
      proxy.inject(fault.serverError(), { operations: ['UpdateItem'], when: () => (landed += 1) > 2 });
      expect(await together([changeEntry([DAILY], { daily: 100_000 })])).toMatchObject([{ kind: 'done' }]);
      expect(expiresTooEarly((await engine.read(ns, KEY))!)).toBe(false);
    });

    test('that has no end gets one after a minute in which it was not used, and lasts until then', async () => {
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
