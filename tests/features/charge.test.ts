import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readItem } from '../../src/backends/dynamodb/client/requests.js';
import { buildReceiptKey } from '../../src/backends/dynamodb/table/keys.js';
import { file } from '../../src/backends/embedded/file/file.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { Limit } from '../../src/core/limit.js';
import type { LimiterOptions } from '../../src/limiter/options.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type FakeClock, fakeClock } from '../../src/testing/fake-clock.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { sweep } from '../../src/backends/dynamodb/reconciler/sweep.js';
import { shapeOf, splitInto, splitShard, spreading, sumOf } from '../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';
import { ChargeModel, rateOf } from '../support/features/charge-model.js';

const USER = { entityId: 'user-1', resource: 'gpt-4' };
const HOUR_MS = 3_600_000;
/** 100 an hour: 1 token in 36 s. */
const RULE = Limit.perHour('tph', 100);
const RATE = rateOf(100, 100, HOUR_MS);

/** A limiter and the model of its only bucket, on one clock. */
class Pair {
  readonly limiter: RateLimiter;
  readonly clock: FakeClock;
  readonly model: ChargeModel;
  #ids = 0;

  constructor(limiter: RateLimiter, clock: FakeClock) {
    this.limiter = limiter;
    this.clock = clock;
    this.model = new ChargeModel(RATE, clock.now());
  }

  /** With an id, the call is sent twice. */
  async charge(kind: 'charge' | 'credit', tokens: number, withId: boolean): Promise<void> {
    const id = withId ? `id-${(this.#ids += 1)}` : undefined;
    this.model[kind](tokens, this.clock.now(), id);
    for (let sent = 0; sent < (withId ? 2 : 1); sent++) {
      await this.limiter[kind]({ ...USER, amounts: { tph: tokens }, ...(id === undefined ? {} : { id }) });
    }
    await this.agree();
  }

  async take(tokens: number): Promise<void> {
    const { granted } = await this.limiter.tryAcquire({ ...USER, consume: { tph: tokens } });
    expect(granted).toBe(this.model.take(tokens, this.clock.now()));
    await this.agree();
  }

  async agree(): Promise<void> {
    expect(await this.limiter.available(USER)).toMatchObject({ tph: this.model.available(this.clock.now()) });
    const bucket = await this.limiter.buckets.get(USER);
    expect(bucket?.limits.find(({ limit }) => limit.name === 'tph')?.consumed ?? 0).toBe(
      Number(this.model.consumed) / 1_000,
    );
  }
}

/** One row for each path on which a store writes a bucket. Each charges before and after that write. */
const PATHS: Record<string, (pair: Pair, withId: boolean) => Promise<void>> = {
  'a take with room': async (pair, withId) => {
    await pair.charge('charge', 30, withId);
    await pair.take(20);
    await pair.charge('charge', 60, withId);
    await pair.take(1);
    await pair.charge('credit', 15, withId);
    await pair.take(1);
  },
  'a write in the full form, after refill was lost at the capacity': async (pair, withId) => {
    await pair.charge('charge', 10, withId);
    await pair.clock.advance(5 * HOUR_MS);
    await pair.charge('charge', 130, withId);
    await pair.clock.advance(10 * HOUR_MS);
    await pair.charge('credit', 5, withId);
    await pair.take(100);
    await pair.take(1);
  },
  'the settling of new parameters': async (pair, withId) => {
    await pair.charge('charge', 130, withId);
    await pair.clock.advance(60_001);
    await pair.limiter.config.setSystem({ limits: [Limit.perHour('tph', 40)] });
    pair.model.change(rateOf(40, 40, HOUR_MS), pair.clock.now());
    await pair.charge('credit', 50, withId);
    await pair.clock.advance(1_234_567);
    await pair.limiter.config.setSystem({ limits: [Limit.perHour('tph', 400)] });
    pair.model.change(rateOf(400, 400, HOUR_MS), pair.clock.now());
    await pair.charge('charge', 7, withId);
  },
  'a refund of a lease': async (pair, withId) => {
    const lease = await pair.limiter.acquire({ ...USER, consume: { tph: 40 } });
    pair.model.take(40, pair.clock.now());
    await pair.charge('charge', 100, withId);
    await lease.rollback();
    pair.model.credit(40, pair.clock.now());
    await pair.agree();
    await pair.charge('credit', 200, withId);
  },
  'an extension of a holder': async (pair, withId) => {
    const lease = await pair.limiter.acquire({ ...USER, consume: { tph: 40 }, leaseTtlMs: 60_000 });
    pair.model.take(40, pair.clock.now());
    await pair.charge('charge', 100, withId);
    await lease.extend(90_000);
    await pair.charge('credit', 3, withId);
    await lease.commit({ tph: 41 });
    pair.model.charge(1, pair.clock.now());
    await pair.agree();
  },
  'a reclaim of an expired holder whose rates return': async (pair, withId) => {
    await pair.limiter.acquire({ ...USER, consume: { tph: 40, slots: 1 }, leaseTtlMs: 60_000 });
    pair.model.take(40, pair.clock.now());
    await pair.charge('charge', 100, withId);
    await pair.clock.advance(60_000);
    await pair.limiter.acquire({ ...USER, consume: { slots: 1 } });
    pair.model.credit(40, pair.clock.now());
    await pair.agree();
    await pair.charge('charge', 2, withId);
  },
  'a pause and its end': async (pair, withId) => {
    await pair.limiter.pause({ ...USER, forMs: 60_000, reason: 'test' });
    await pair.charge('charge', 130, withId);
    await pair.charge('credit', 20, withId);
    await pair.clock.advance(60_000);
    await pair.charge('charge', 1, withId);
    await pair.limiter.pause({ entityId: USER.entityId, forMs: 'forever', reason: 'test' });
    await pair.charge('charge', 2, withId);
    await pair.limiter.resume({ entityId: USER.entityId });
    await pair.take(1);
  },
  'a reset': async (pair, withId) => {
    await pair.charge('charge', 500, withId);
    await pair.limiter.buckets.reset(USER);
    pair.model.reset(pair.clock.now());
    await pair.charge('charge', 500, withId);
    await pair.charge('credit', 600, withId);
  },
  'a new base for a balance beyond 2^50': async (pair, withId) => {
    for (let sent = 0; sent < 3; sent++) await pair.charge('charge', 1e12, withId);
    await pair.clock.advance(HOUR_MS);
    await pair.charge('credit', 1e12, withId);
    for (let sent = 0; sent < 3; sent++) await pair.charge('credit', 1e12, withId);
    await pair.clock.advance(1_000);
    await pair.take(100);
    await pair.charge('charge', 1, withId);
  },
};

const OPTIONS: LimiterOptions = {
  limits: [RULE, Limit.concurrent('slots', 1)],
  onExpiry: 'refund',
  configCacheMs: 0,
  timeouts: { callMs: 10_000, acquireMs: 20_000 },
};

const folder = mkdtempSync(join(tmpdir(), 'headgate-charge-'));
let files = 0;
let world: DynamoWorld | null = null;

beforeAll(async () => {
  if (!ENGINE.missing) world = await startWorld({ record: true, askForCapacity: true });
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const STORES: Record<string, () => Promise<Pair>> = {
  memory: async () => {
    const clock = fakeClock();
    return new Pair(await RateLimiter.open(memory(), { ...OPTIONS, clock }), clock);
  },
  file: async () => {
    const clock = fakeClock();
    const path = join(folder, `${(files += 1)}.db`);
    return new Pair(await RateLimiter.open(file({ path }), { ...OPTIONS, clock }), clock);
  },
  dynoxide: async () => {
    const space = await world!.space();
    return new Pair(await space.open(OPTIONS), space.clock);
  },
};

describe.each(Object.keys(STORES))('charges and credits on %s', (store) => {
  const skip = store === 'dynoxide' && ENGINE.missing;

  test
    .skipIf(skip)
    .each(
      Object.keys(PATHS).flatMap((path) => [
        [path, 'without an id', false] as const,
        [path, 'with an id, each sent twice', true] as const,
      ]),
    )('%s: the balance and the consumption are those of the plain model, %s', async (path, _, withId) => {
    const pair = await STORES[store]!();
    await PATHS[path]!(pair, withId);
    await pair.limiter.close();
  });

  test.skipIf(skip)('a random sequence leaves the balance and the consumption of the plain model', async () => {
    const step = fc.record({
      kind: fc.constantFrom('charge', 'credit', 'take', 'wait'),
      tokens: fc.integer({ min: 0, max: 150 }),
      withId: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const pair = await STORES[store]!();
        for (const { kind, tokens, withId } of steps) {
          if (kind === 'wait') await pair.clock.advance(tokens * 37_123);
          else if (kind === 'take') await pair.take(tokens);
          else await pair.charge(kind, tokens, withId);
        }
        await pair.limiter.close();
      }),
      { numRuns: store === 'memory' ? 60 : 8 },
    );
  });
});

test('a bucket in debt by a charge is not evicted from memory', async () => {
  const clock = fakeClock();
  await using limiter = await RateLimiter.open(memory({ keptBuckets: 1 }), { limits: [RULE], clock });
  await limiter.charge({ ...USER, amounts: { tph: 150 } });
  for (let other = 0; other < 20; other++) {
    await limiter.acquire({ entityId: `other-${other}`, resource: 'gpt-4', consume: { tph: 0 } });
  }
  expect(await limiter.available(USER)).toEqual({ tph: -50 });
});

test('a file keeps the receipts of charges after it was closed and opened again', async () => {
  const clock = fakeClock();
  const path = join(folder, 'kept.db');
  for (let opened = 0; opened < 2; opened++) {
    await using limiter = await RateLimiter.open(file({ path }), { limits: [RULE], clock });
    await limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    expect(await limiter.available(USER)).toEqual({ tph: 70 });
  }
});

describe.skipIf(ENGINE.missing)(`charges and credits on a table${ENGINE.note}`, () => {
  const sharded = async (count: number) => {
    const space = await world!.space();
    const first = await space.open({ limits: [Limit.perDay('tpd', 800)] });
    await first.acquire({ ...USER, consume: { tpd: 0 } });
    await splitInto(count, world!, space, USER);
    const limiter = await space.open({ limits: [Limit.perDay('tpd', 800)] }, spreading());
    const balances = async () =>
      (await space.shards('user-1', 'gpt-4')).map(({ limits }) => Number(limits[0]?.tokensMilli) / 1_000);
    return { space, limiter, balances };
  };

  test.each([
    ['without an id', {}, {}],
    ['with an id', { id: 'a' }, { id: 'b' }],
  ])('a charge of a bucket of four shards is divided among them, %s', async (_, id, other) => {
    const { space, limiter, balances } = await sharded(4);
    expect(shapeOf(await space.shards('user-1', 'gpt-4'))).toBe('0/4 1/4 2/4 3/4');
    await limiter.charge({ ...USER, amounts: { tpd: 1_002 }, ...id });
    expect(await balances()).toEqual([-50.5, -50.5, -50.5, -50.5]);
    expect(await limiter.available(USER)).toEqual({ tpd: -202 });
    const asked = await limiter.tryAcquire({ ...USER, consume: { tpd: 1 } });
    expect(asked).toMatchObject({ granted: false });
    await limiter.credit({ ...USER, amounts: { tpd: 402 }, ...other });
    expect(await balances()).toEqual([50, 50, 50, 50]);
    expect(sumOf(await space.shards('user-1', 'gpt-4'), 'tpd', space.clock.now()).consumed).toBe(600_000);
  });

  test('a retry of a charge counts once after a split, and after the shards were merged', async () => {
    const { space, limiter } = await sharded(2);
    const again = async (): Promise<void> => limiter.charge({ ...USER, amounts: { tpd: 100 }, id: 'a' });
    const consumed = async (): Promise<number> =>
      sumOf(await space.shards('user-1', 'gpt-4'), 'tpd', space.clock.now()).consumed;
    await again();
    await splitShard(world!, space, USER, 0);
    expect(shapeOf(await space.shards('user-1', 'gpt-4'))).toBe('0/4 1/2 2/4');
    await again();
    await limiter.charge({ ...USER, amounts: { tpd: 1 }, id: 'b' });
    await space.clock.advance(2 * HOUR_MS);
    for (let pass = 0; pass < 3; pass++) await sweep(world!.table, { now: () => space.clock.now() });
    expect(shapeOf(await space.shards('user-1', 'gpt-4'))).toBe('0/1');
    await again();
    expect(await consumed()).toBe(101_000);
  });

  test.each([
    ['the answer is lost', fault.loseAnswer],
    ['the request is lost', fault.loseRequest],
  ])('a charge with an id counts once if %s', async (_, lose) => {
    const space = await world!.space();
    const limiter = await space.open({ limits: [RULE] });
    const lost = world!.proxy.inject(lose(), { operations: ['TransactWriteItems'], times: 1 });
    await limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    expect(lost.fired).toBe(1);
    expect(await limiter.available(USER)).toEqual({ tph: 70 });
    world!.proxy.heal();
  });

  test.each([
    ['a transaction conflict', () => fault.transactionConflict([0, 1])],
    ['throttling', () => fault.throttle()],
    ['a server error', () => fault.serverError()],
  ])('a charge with an id is sent again after %s, and counts once', async (_, fail) => {
    const space = await world!.space();
    const limiter = await space.open({ limits: [RULE] });
    await limiter.acquire({ ...USER, consume: { tph: 0 } });
    const failing = world!.proxy.inject(fail(), { operations: ['TransactWriteItems'], times: 2 });
    await limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    expect(failing.fired).toBe(2);
    expect(await limiter.available(USER)).toEqual({ tph: 70 });
    world!.proxy.heal();
  });

  test('processes that send the same charge at the same time, beside acquires, count it once', async () => {
    const space = await world!.space();
    const limiters = await Promise.all(Array.from({ length: 4 }, async () => space.open({ limits: [RULE] })));
    await Promise.all(
      limiters.flatMap((limiter) => [
        limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' }),
        limiter.acquire({ ...USER, consume: { tph: 5 } }),
        limiter.charge({ ...USER, amounts: { tph: 2 } }),
      ]),
    );
    expect(await limiters[0]?.available(USER)).toEqual({ tph: 42 });
  });

  test('a transaction that lands after its call has failed counts once together with the repeated call', async () => {
    const space = await world!.space();
    const limiter = await space.open({ limits: [RULE], timeouts: { callMs: 300, acquireMs: 300 } });
    await limiter.acquire({ ...USER, consume: { tph: 0 } });
    const held = world!.proxy.inject(fault.holdRequest(), { operations: ['TransactWriteItems'], times: 1 });
    const call = limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    await held.untilFired();
    const [outcome] = await Promise.all([
      call.then(
        () => 'done',
        () => 'failed',
      ),
      space.clock.advance(400),
    ]);
    expect(outcome).toBe('failed');
    const patient = await space.open({ limits: [RULE] });
    const repeated = patient.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    await repeated;
    held.release();
    await expect.poll(async () => (await space.shards('user-1', 'gpt-4'))[0]?.limits[0]?.consumedMilli).toBe(30_000);
    await patient.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    expect((await space.shards('user-1', 'gpt-4'))[0]?.limits[0]?.consumedMilli).toBe(30_000);
  });

  test('the purge of a namespace deletes its receipts', async () => {
    const space = await world!.space();
    const limiter = await space.open({ limits: [RULE] });
    await limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' });
    const receipt = buildReceiptKey(space.ns, { ...USER, id: 'a' });
    const read = async () => readItem(world!.table, receipt, performance.now() + 5_000);
    expect(await read()).toMatchObject({ c: { S: 'charge tph=30' } });
    await limiter.namespaces.delete(space.namespace);
    await limiter.namespaces.purge(space.ns);
    expect(await read()).toBeUndefined();
  });

  test('a bucket in debt by a charge does not expire before the debt is paid', async () => {
    const space = await world!.space();
    const limiter = await space.open({ limits: [RULE] });
    await limiter.charge({ ...USER, amounts: { tph: 10_100 } });
    const [shard] = await space.shards('user-1', 'gpt-4');
    expect(shard?.ttlSec).toBeGreaterThanOrEqual(space.clock.now() / 1_000 + 101 * 3_600);
  });

  test('a table of schema version 1 serves a charge, and refuses one with an id', async () => {
    const { client, name } = { client: world!.table.transport, name: world!.table.name };
    const put = async (version: number): Promise<void> => {
      const fields = { schema_version: { N: String(version) }, min_client_version: { N: String(version) } };
      const Item = { PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' }, ...fields };
      await client.send('PutItem', { TableName: name, Item }, performance.now() + 5_000);
    };
    await put(1);
    try {
      const space = await world!.space();
      const limiter = await space.open({ limits: [RULE] });
      await limiter.charge({ ...USER, amounts: { tph: 30 } });
      await expect(limiter.charge({ ...USER, amounts: { tph: 30 }, id: 'a' })).rejects.toMatchObject({
        code: 'schema.mismatch',
        message: expect.stringContaining('a charge or credit with an id needs 2'),
      });
      expect(await limiter.available(USER)).toEqual({ tph: 70 });
    } finally {
      await put(2);
    }
  });
});
