import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { dynamodb } from '../../../../src/backends/dynamodb/index.js';
import { BackendUnavailable, HeadgateError } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import type { LimiterOptions } from '../../../../src/limiter/options.js';
import { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoRequest, type Fault, fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';
import { stopTimers, until } from '../../../support/models/hand-time.js';
import { quickRandom } from '../../../support/dynamodb/quick-random.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 5)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
const QUICK = { random: quickRandom };
const POLICIES = ['block', 'allow', 'local'] as const;
type Policy = (typeof POLICIES)[number];

/** The decision under a policy during an outage. The limits of this process allow three. */
async function verdictOf(limiter: RateLimiter, policy: Policy) {
  try {
    const { granted, decidedBy } = await limiter.tryAcquire({ ...ASK, onUnavailable: policy });
    return { granted, decidedBy };
  } catch (error) {
    expect(error).toBeInstanceOf(BackendUnavailable);
    return 'blocked';
  }
}
const EXPECTED = {
  block: 'blocked',
  allow: { granted: true, decidedBy: 'open' },
  local: { granted: true, decidedBy: 'fallback' },
};

describe.skipIf(ENGINE.missing)(`outages of DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterEach(async () => {
    world?.proxy.heal();
    await world?.proxy.accept();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const writesTo = (entityId: string) => (request: DynamoRequest) =>
    /^(PutItem|UpdateItem)$/.test(request.operation) && JSON.stringify(request.body).includes(`/BUCKET#${entityId}#`);
  const createChain = async (space: Space): Promise<void> => {
    const admin = await space.open();
    await admin.entities.create({ id: 'proj-1' });
    await admin.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
  };
  const accountOf = async (space: Space, entityId: string) => {
    const [shard] = await space.shards(entityId, 'gpt-4');
    const rpm = shard?.limits.find(({ limit }) => limit.name === 'rpm');
    return shard && { acquires: shard.acquires, tokens: rpm?.tokensMilli, taken: rpm?.consumedMilli };
  };

  describe.each(POLICIES)('the outage policy %s', (policy) => {
    test(`the policy ${policy} decides before the store has ever answered`, async () => {
      const { name: table } = world.table;
      const { region } = world.engine;
      await world.proxy.refuse();
      const limiter = new RateLimiter(dynamodb({ table, region, endpoint: world.proxy.endpoint }), LIMITS);
      expect(await verdictOf(limiter, policy)).toEqual(EXPECTED[policy]);
      await limiter.close();
    });

    test(`the policy ${policy} decides when the config cannot be read`, async () => {
      const limiter = await (await world.space()).open(LIMITS, QUICK);
      await world.proxy.refuse();
      expect(await verdictOf(limiter, policy)).toEqual(EXPECTED[policy]);
    });

    test(`the policy ${policy} decides when the first write fails`, async () => {
      const limiter = await (await world.space()).open(LIMITS, QUICK);
      await limiter.config.resolve('user-1', 'gpt-4');
      await world.proxy.refuse();
      expect(await verdictOf(limiter, policy)).toEqual(EXPECTED[policy]);
    });

    test(`the policy ${policy} decides when a later write fails`, async () => {
      const limiter = await (await world.space()).open(LIMITS, QUICK);
      await limiter.acquire(ASK);
      await world.proxy.refuse();
      expect(await verdictOf(limiter, policy)).toEqual(EXPECTED[policy]);
    });

    test.each([
      ['a new bucket', false],
      ['buckets that are known to have room', true],
    ])(
      `the policy ${policy} decides when the second level of a cascade fails, over %s, and the first level is given back`,
      async (_, isWarm) => {
        const space = await world.space();
        await createChain(space);
        const limiter = await space.open(LIMITS, QUICK);
        if (isWarm) await limiter.acquire(ASK);
        const before = await accountOf(space, 'user-1');
        world.proxy.inject(fault.serverError(), { when: writesTo('proj-1') });
        expect(await verdictOf(limiter, policy)).toEqual(EXPECTED[policy]);
        const nothing = { acquires: 0, tokens: 60_000, taken: 0 };
        expect(await accountOf(space, 'user-1')).toEqual(before ?? nothing);
        expect(space.errors).toEqual([]);
      },
    );

    test(`the policy ${policy} decides when a transaction over several levels fails`, async () => {
      const space = await world.space();
      await createChain(space);
      const limiter = await space.open(LIMITS, QUICK);
      world.proxy.inject(fault.serverError(), { operations: ['TransactWriteItems'] });
      const decision = limiter.tryAcquire({ ...ASK, atomic: true, onUnavailable: policy });
      if (policy === 'block') await expect(decision).rejects.toMatchObject({ code: 'backend.unavailable' });
      else expect(await decision).toMatchObject(EXPECTED[policy]);
      expect(await accountOf(space, 'user-1')).toBeUndefined();
    });
  });

  describe('a transaction that DynamoDB cancels', () => {
    const cancelledBy = (code: string): Fault =>
      fault.answer(() => ({
        status: 400,
        body: {
          __type: 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',
          Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [None, ${code}]`,
          CancellationReasons: [{ Code: 'None' }, { Code: code, Message: 'the reason' }],
        },
      }));
    const askAtomically = async (code: string, policy: Policy) => {
      world.proxy.heal();
      const space = await world.space();
      await createChain(space);
      const limiter = await space.open({ ...LIMITS, maxRetries: 1 }, QUICK);
      world.proxy.inject(cancelledBy(code), { operations: ['TransactWriteItems'] });
      return limiter.tryAcquire({ ...ASK, atomic: true, onUnavailable: policy });
    };

    test.each(['ThrottlingError', 'ProvisionedThroughputExceeded'])(
      'because of %s is throttled, and the outage policy decides',
      async (code) => {
        await expect(askAtomically(code, 'block')).rejects.toMatchObject({ kind: 'throttled' });
        expect(await askAtomically(code, 'allow')).toMatchObject(EXPECTED.allow);
      },
    );

    test('because it is not valid is an error, and no denial', async () => {
      await expect(askAtomically('ValidationError', 'allow')).rejects.toMatchObject({
        code: 'infrastructure.dynamodb',
        message: expect.stringContaining('ValidationError') as string,
      });
    });

    test('because of other writers is a denial', async () => {
      expect(await askAtomically('TransactionConflict', 'allow')).toMatchObject({
        granted: false,
        reason: 'contended',
      });
    });
  });

  test('tokens that a cascade cannot give back are reported', async () => {
    const space = await world.space();
    await createChain(space);
    const limiter = await space.open(LIMITS, QUICK);
    await limiter.acquire(ASK);
    world.proxy.inject(fault.serverError(), { when: writesTo('proj-1') });
    let sent = 0;
    // The take succeeds, and its compensation fails.
    world.proxy.inject(fault.serverError(), { when: (request) => writesTo('user-1')(request) && (sent += 1) > 1 });
    expect(await verdictOf(limiter, 'allow')).toEqual(EXPECTED.allow);
    expect(space.errors).toMatchObject([{ code: 'backend.unavailable' }]);
    // The error is strict.
    expect(await accountOf(space, 'user-1')).toMatchObject({ taken: 2_000 });
  });

  test('the policy local counts in this process, and not in the store afterwards', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.perHour('rpm', 2)], onUnavailable: 'local' });
    await limiter.config.resolve('user-1', 'gpt-4');
    await world.proxy.refuse();
    const decisions = [];
    for (let call = 0; call < 3; call++) decisions.push(await limiter.tryAcquire(ASK));
    expect(decisions.map(({ granted, decidedBy }) => [granted, decidedBy])).toEqual([
      [true, 'fallback'],
      [true, 'fallback'],
      [false, 'fallback'],
    ]);
    await world.proxy.accept();
    await space.clock.advance(1_000);
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
    expect(await accountOf(space, 'user-1')).toMatchObject({ acquires: 1, taken: 1_000 });
  });

  describe('leases during an outage', () => {
    test('a lease operation rejects during an outage, and counts once when it is repeated afterwards', async () => {
      const space = await world.space();
      const limiter = await space.open(LIMITS, QUICK);
      const leases = [];
      for (let call = 0; call < 4; call++)
        leases.push(await limiter.acquire({ ...ASK, consume: { rpm: 5, slots: 1 } }));
      const [adjusted, released, committed, rolledBack] = leases;
      const work = [
        () => adjusted?.settle({ rpm: 9 }),
        () => released?.release(),
        () => committed?.commit({ rpm: 2 }),
        () => rolledBack?.rollback(),
      ];
      await world.proxy.refuse();
      for (const act of work) await expect(act()).rejects.toMatchObject({ code: 'backend.unavailable' });
      await world.proxy.accept();
      // Four failures are too few to open the breaker.
      for (const act of work) await act();
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect([...(shard?.holders.keys() ?? [])]).toEqual([adjusted?.id]);
      expect(await accountOf(space, 'user-1')).toMatchObject({ taken: 16_000, tokens: 44_000 });
    });
  });

  describe('timeouts', () => {
    const TIME_MS = 300;
    const impatient = async (options: LimiterOptions = {}) => {
      const space = await world.space();
      const timeouts = { callMs: TIME_MS, acquireMs: TIME_MS };
      return space.open({ ...LIMITS, timeouts, ...options });
    };

    test.each(['BatchGetItem', 'PutItem', 'UpdateItem', 'TransactWriteItems'])(
      'a request %s without an answer times out, and nothing is sent afterwards',
      async (operation) => {
        const limiter = await impatient();
        const atomic = operation === 'TransactWriteItems';
        if (operation === 'UpdateItem') await limiter.acquire(ASK);
        if (operation !== 'BatchGetItem') await limiter.config.resolve('user-1', 'gpt-4');
        const ask = { ...ASK, atomic };
        if (atomic) {
          await limiter.entities.create({ id: 'proj-1' });
          await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
        }
        const held = world.proxy.inject(fault.holdAnswer(), { operations: [operation] });
        using time = stopTimers();
        const late = limiter.tryAcquire(ask);
        await until(() => held.fired > 0);
        time.pass(TIME_MS);
        await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'timeout' });
        const { fired } = held;
        await limiter.ping();
        expect(held.fired).toBe(fired);
      },
    );
  });

  describe('classes of errors', () => {
    const faults: Record<
      string,
      { readonly make: () => Fault; readonly codes: readonly string[]; readonly admits: boolean }
    > = {
      'a server error': { make: () => fault.serverError(), codes: ['backend.unavailable'], admits: true },
      'an unavailable service': { make: () => fault.serverError(503), codes: ['backend.unavailable'], admits: true },
      'a broken connection': { make: () => fault.loseRequest(), codes: ['backend.unavailable'], admits: true },
      throttling: { make: () => fault.throttle(), codes: ['backend.unavailable'], admits: true },
      'a missing permission': { make: () => fault.accessDenied(), codes: ['backend.denied'], admits: false },
    };

    test.each(Object.entries(faults))(
      'every operation rejects with a typed error after %s',
      async (_, { make, codes, admits }) => {
        const space = await world.space();
        // Throttled corrections are retried until their timeout.
        const limiter = await space.open({ ...LIMITS, timeouts: { callMs: 1_000, acquireMs: 1_000 } }, QUICK);
        const lease = await limiter.acquire({ ...ASK, consume: { rpm: 1, slots: 1 } });
        world.proxy.inject(make());
        const work: readonly (() => Promise<unknown>)[] = [
          () => limiter.acquire(ASK),
          () => limiter.acquire({ ...ASK, entityId: 'user-2' }),
          () => lease.adjust({ rpm: 1 }),
          () => lease.extend(90_000),
          () => limiter.status(ASK),
          () => limiter.config.setSystem(LIMITS),
          () => limiter.config.get('system'),
          () => limiter.entities.create({ id: 'user-3' }),
          () => limiter.entities.list(),
          () => limiter.buckets.list({ entityId: 'user-1' }),
          () => limiter.leases.list(ASK),
          () => limiter.audit.list({ entityId: 'user-1' }),
          () => limiter.namespaces.register('another'),
          () => lease.commit(),
        ];
        for (const [at, act] of work.entries()) {
          // The breaker lets one call a second through.
          await space.clock.advance(1_000);
          const error = await act().then(
            () => `operation ${at} succeeded`,
            (thrown: unknown) => thrown,
          );
          expect(error).toBeInstanceOf(HeadgateError);
          expect(codes).toContain((error as HeadgateError).code);
        }
        await space.clock.advance(1_000);
        const allowed = limiter.tryAcquire({ ...ASK, onUnavailable: 'allow' });
        if (admits) expect(await allowed).toMatchObject({ granted: true, decidedBy: 'open' });
        else await expect(allowed).rejects.toMatchObject({ code: codes[0] });
      },
    );
  });
});
