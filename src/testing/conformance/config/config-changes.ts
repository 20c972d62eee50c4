import assert from 'node:assert/strict';
import { ask, assertExactWait, denial, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { STORED_LEVELS } from './config-levels.js';

const atEachLevel: readonly Case[] = STORED_LEVELS.flatMap(({ source, ref, set }) => [
  {
    title: `lowering the ${source} limits reduces an existing bucket, also for a process that has the old limits cached`,
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await set(writer, 'rpd:10/day');
      await old.acquire(ask({ rpd: 2 }));
      await fixture.clock.advance(1_000);
      await set(writer, 'rpd:5/day');
      assert.deepEqual(await writer.available(USER), { rpd: 5 });
      await writer.acquire(ask({ rpd: 1 }));
      await old.acquire(ask({ rpd: 4 }));
      await denial(old, ask({ rpd: 1 }));
      assert.equal(old.config.cache.stats().refreshes, 1);
    },
  },
  {
    title: `raising the ${source} limits adds no tokens to an existing bucket, which refills at the old rate before the change and the new rate after it`,
    run: async (fixture) => {
      const [writer, fresh] = [await fixture.limiter(), await fixture.limiter()];
      await set(writer, 'rpm:60/min');
      await writer.acquire(ask({ rpm: 60 }));
      await fixture.clock.advance(10_000);
      await set(writer, 'rpm:120/min');
      assert.deepEqual(await fresh.available(USER), { rpm: 10 });
      await fresh.acquire(ask({ rpm: 10 }));
      await assertExactWait(fixture, fresh, ask({ rpm: 1 }), 500);
      await assertExactWait(fixture, writer, ask({ rpm: 120 }), 60_000);
    },
  },
  {
    title: `deleting the ${source} limits applies the next level to an existing bucket, also for a process that has them cached`,
    run: async (fixture) => {
      const [writer, old] = [await fixture.limited('rpm:120/min'), await fixture.limited('rpm:120/min')];
      const next = STORED_LEVELS[STORED_LEVELS.findIndex((level) => level.source === source) + 1];
      await next?.set(writer, 'rpm:120/min');
      await set(writer, 'rpm:60/min');
      await old.acquire(ask({ rpm: 60 }));
      await fixture.clock.advance(1_000);
      await writer.config.delete(ref);
      assert.equal((await writer.config.resolve(USER.entityId, USER.resource)).configSource, next?.source ?? 'code');
      await writer.acquire(ask({ rpm: 1 }));
      await assertExactWait(fixture, old, ask({ rpm: 1 }), 500);
      await fixture.clock.advance(3_600_000);
      await old.acquire(ask({ rpm: 120 }));
    },
  },
]) satisfies Case[];

const inCode: readonly Case[] = [
  {
    title:
      'limits in code reach an existing bucket from the process that was opened last, and no older process undoes them',
    run: async (fixture) => {
      const old = await fixture.limited('rpd:10/day');
      await old.acquire(ask({ rpd: 2 }));
      await fixture.clock.advance(1_000);
      const fresh = await fixture.limited('rpd:5/day');
      await fresh.acquire(ask({ rpd: 1 }));
      await old.acquire(ask({ rpd: 4 }));
      await denial(old, ask({ rpd: 1 }));
      await denial(fresh, ask({ rpd: 1 }));
    },
  },
  {
    title:
      'stored limits replace limits in code on an existing bucket, and limits in code return when the stored ones are deleted',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:60/min');
      await limiter.acquire(ask({ rpm: 60 }));
      await fixture.clock.advance(1_000);
      await limiter.config.setSystem({ limits: limits('rpm:600/min') });
      await limiter.acquire(ask({ rpm: 1 }));
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 100);
      await limiter.config.delete('system');
      await assertExactWait(fixture, limiter, ask({ rpm: 1 }), 1_000);
    },
  },
];

const caches: readonly Case[] = [
  {
    title: 'a change reaches an existing bucket within one cache lifetime, whichever process made it',
    run: async (fixture) => {
      const [writer, reader] = [await fixture.limiter(), await fixture.limiter()];
      await writer.config.setSystem({ limits: limits('rpd:10/day') });
      await reader.acquire(ask({ rpd: 1 }));
      await writer.config.setSystem({ limits: limits('rpd:5/day') });
      await reader.acquire(ask({ rpd: 1 }));
      assert.deepEqual(await reader.available(USER), { rpd: 8 });
      await fixture.clock.advance(60_000);
      await reader.acquire(ask({ rpd: 5 }));
      await denial(reader, ask({ rpd: 1 }));
    },
  },
  {
    title: 'a process with an old cache reads again, at most once a second',
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await writer.config.setSystem({ limits: limits('rpm:600/min') });
      await old.acquire(ask({ rpm: 1 }));
      await writer.config.setSystem({ limits: limits('rpm:300/min') });
      await writer.acquire(ask({ rpm: 1 }));
      for (const refreshes of [0, 0, 1, 1]) {
        await old.acquire(ask({ rpm: 1 }));
        assert.equal(old.config.cache.stats().refreshes, refreshes);
        await fixture.clock.advance(500);
      }
    },
  },
  {
    title: 'two processes with different cached configs that ask alternately grant no more than the limit',
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await writer.config.setSystem({ limits: limits('rpm:300/min') });
      await old.acquire(ask({ rpm: 1 }));
      await writer.config.setSystem({ limits: limits('rpm:300/min', 'tpm:3/min') });
      let granted = 0;
      for (let turn = 0; turn < 100; turn++) {
        await fixture.clock.advance(9);
        await old.acquire(ask({ rpm: 1 }));
        if ((await writer.tryAcquire(ask({ rpm: 1, tpm: 1 }))).granted) granted += 1;
      }
      assert.equal(granted, 3);
    },
  },
  {
    title: 'two processes with different limits in code that ask alternately grant no more than the newer limit',
    run: async (fixture) => {
      const old = await fixture.limited('rpm:60/min', 'extra:50/min');
      await fixture.clock.advance(1);
      const fresh = await fixture.limited('rpm:6/min');
      let granted = 0;
      for (let turn = 0; turn <= 300; turn++) {
        if ((await (turn % 2 === 0 ? fresh : old).tryAcquire(ask({ rpm: 1 }))).granted) granted += 1;
        await fixture.clock.advance(100);
      }
      assert.equal(granted, 6 + 3);
    },
  },
  {
    title: 'writing the same limits again changes nothing',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setSystem({ limits: limits('rpm:7/977ms', 'slots:2/concurrent') });
      await limiter.acquire(ask({ rpm: 7, slots: 1 }));
      await fixture.clock.advance(101);
      const before = await limiter.status(USER);
      const waitMs = (await denial(limiter, ask({ rpm: 7 }))).retryAfterMs;
      await limiter.config.setSystem({ limits: limits('rpm:7/977ms', 'slots:2/concurrent') });
      assert.equal((await denial(limiter, ask({ rpm: 7 }))).retryAfterMs, waitMs);
      assert.deepEqual(await limiter.status(USER), before);
    },
  },
  {
    title: 'a lease that was granted before a change does not undo the change, and its settlement counts',
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await writer.config.setSystem({ limits: limits('rpd:10/day') });
      const lease = await old.acquire(ask({ rpd: 2 }));
      await fixture.clock.advance(1_000);
      await writer.config.setSystem({ limits: limits('rpd:50/day') });
      await writer.acquire(ask({ rpd: 1 }));
      await lease.settle({ rpd: 5 });
      assert.deepEqual(await writer.available(USER), { rpd: 4 });
      assert.equal((await writer.status(USER))[0]?.limit.capacity, 50);
      await lease.rollback();
      assert.deepEqual(await writer.available(USER), { rpd: 9 });
    },
  },
  {
    title: 'after a change from A to B and back to A, a process that has B cached does not apply B',
    run: async (fixture) => {
      const [writer, old] = [await fixture.limiter(), await fixture.limiter()];
      await writer.config.setSystem({ limits: limits('rpd:10/day') });
      await writer.acquire(ask({ rpd: 1 }));
      await writer.config.setSystem({ limits: limits('rpd:2/day') });
      await old.config.resolve(USER.entityId, USER.resource);
      await writer.config.setSystem({ limits: limits('rpd:10/day') });
      await writer.acquire(ask({ rpd: 1 }));
      await old.acquire(ask({ rpd: 1 }));
      assert.deepEqual(await writer.available(USER), { rpd: 7 });
    },
  },
];

export const configChanges: readonly Case[] = [...atEachLevel, ...inCode, ...caches];
