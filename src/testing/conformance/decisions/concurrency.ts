import assert from 'node:assert/strict';
import { ask, countGranted, times, tokensOf, listUsage, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';

export const concurrency: readonly Case[] = [
  {
    title: 'exactly 100 of 200 concurrent asks are granted by a rate of 100',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:100/min');
      assert.equal(await countGranted(times(200, async () => limiter.tryAcquire(ask({ rpm: 1 })))), 100);
      assert.deepEqual(await limiter.available(USER), { rpm: 0 });
    },
  },
  {
    title: 'exactly 100 of 200 concurrent asks for a slot are granted by a limit of 100 slots',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:100/concurrent');
      assert.equal(await countGranted(times(200, async () => limiter.tryAcquire(ask({ slots: 1 })))), 100);
      assert.deepEqual(await limiter.available(USER), { slots: 0 });
    },
  },
  ...(['rpm:100/min', 'rpm:100/concurrent'].map((rule) => ({
    title: `five processes together are granted the same total of ${rule} as one`,
    run: async (fixture) => {
      const limiters = await Promise.all(times(5, async () => fixture.limited(rule)));
      const asks = limiters.flatMap((limiter) => times(40, async () => limiter.tryAcquire(ask({ rpm: 1 }))));
      assert.equal(await countGranted(asks), 100);
    },
  })) satisfies Case[]),
  {
    title: 'three processes together are granted the same total over time as one',
    run: async (fixture) => {
      const limiters = await Promise.all(times(3, async () => fixture.limited('rpm:60/min:10')));
      let granted = 0;
      for (let second = 0; second <= 30; second++) {
        const asks = limiters.flatMap((limiter) => times(4, async () => limiter.tryAcquire(ask({ rpm: 1 }))));
        granted += await countGranted(asks);
        await fixture.clock.advance(1_000);
      }
      assert.equal(granted, 10 + 30);
    },
  },
  {
    title: 'of concurrent asks of different sizes only those that no longer fit are refused',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:100/min');
      const sizes = times(60, (at) => 1 + (at % 7));
      const decisions = await Promise.all(sizes.map(async (tpm) => limiter.tryAcquire(ask({ tpm }))));
      const taken = sizes.reduce((sum, size, at) => sum + (decisions[at]?.granted === true ? size : 0), 0);
      const left = 100 - taken;
      assert.deepEqual(await limiter.available(USER), { tpm: left });
      assert.ok(sizes.every((size, at) => decisions[at]?.granted === true || size > left));
    },
  },
  {
    title: 'concurrent rollbacks of all leases give everything back',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:100/day', 'slots:50/concurrent');
      const leases = [];
      for (let count = 0; count < 40; count++) {
        leases.push(await limiter.acquire(ask({ rpm: 2, slots: 1 })));
        await fixture.clock.advance(1);
      }
      await Promise.all(leases.map(async (lease) => lease.rollback()));
      assert.deepEqual(await limiter.available(USER), { rpm: 100, slots: 50 });
      assert.deepEqual((await limiter.leases.list(USER)).items, []);
      assert.deepEqual(tokensOf(await listUsage(fixture, limiter)), [{}]);
    },
  },
  {
    title: 'no settlement is lost when many leases settle concurrently',
    run: async (fixture) => {
      const limiter = await fixture.limited('tpm:1000/min');
      const leases = await Promise.all(times(50, async () => limiter.acquire(ask({ tpm: 10 }))));
      await Promise.all(leases.map(async (lease, at) => lease.settle({ tpm: at })));
      assert.deepEqual(await limiter.available(USER), { tpm: 1_000 - (49 * 50) / 2 });
    },
  },
  {
    title: 'as many concurrent asks are granted as slots were given back',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:10/concurrent');
      const held = [];
      for (let count = 0; count < 10; count++) {
        held.push(await limiter.acquire(ask({ slots: 1 })));
        await fixture.clock.advance(1);
      }
      await Promise.all(held.slice(0, 6).map(async (lease) => lease.release()));
      assert.equal(await countGranted(times(20, async () => limiter.tryAcquire(ask({ slots: 1 })))), 6);
    },
  },
  {
    title: 'asks that miss a slot that was given back announce the expiry of the lease that got it',
    run: async (fixture) => {
      const limiter = await fixture.limiter({ limits: limits('slots:1/concurrent'), leaseTtlMs: 30_000 });
      let held = await limiter.acquire(ask({ slots: 1 }));
      for (let round = 0; round < 5; round++) {
        const asks = [held.release(), ...times(4, async () => limiter.tryAcquire(ask({ slots: 1 })))];
        const decisions = (await Promise.all(asks)).filter((decision) => decision !== undefined);
        const [granted, ...more] = decisions.filter((decision) => decision.granted);
        assert.deepEqual(more, []);
        const refusals = decisions.filter((decision) => !decision.granted);
        assert.deepEqual(
          new Set(refusals.map(({ reason, retryAfterMs }) => `${reason}, ${retryAfterMs} ms`)),
          new Set(['exhausted, 30000 ms']),
        );
        held = granted?.lease ?? (await limiter.acquire(ask({ slots: 1 })));
      }
    },
  },
  {
    title: 'expired slots are granted once to concurrent asks',
    run: async (fixture) => {
      const limiter = await fixture.limited('slots:5/concurrent');
      for (let count = 0; count < 5; count++) await limiter.acquire(ask({ slots: 1 }));
      await fixture.clock.advance(60_000);
      assert.equal(await countGranted(times(20, async () => limiter.tryAcquire(ask({ slots: 1 })))), 5);
    },
  },
  {
    title: 'a change of limits is applied once when many processes bring it concurrently',
    run: async (fixture) => {
      const writer = await fixture.limiter();
      await writer.config.setSystem({ limits: limits('rpm:10/day') });
      await writer.acquire(ask({ rpm: 4 }));
      await fixture.clock.advance(1_000);
      await writer.config.setSystem({ limits: limits('rpm:20/day', 'tpm:5/day') });
      const limiters = await Promise.all(times(6, async () => fixture.limiter()));
      const asks = limiters.flatMap((limiter) => times(5, async () => limiter.tryAcquire(ask({ rpm: 1, tpm: 1 }))));
      assert.equal(await countGranted(asks), 5);
      assert.deepEqual(await writer.available(USER), { rpm: 1, tpm: 0 });
    },
  },
];
