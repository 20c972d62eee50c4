import assert from 'node:assert/strict';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { ask, assertRejects, denial, USER } from '../kit/asking.js';
import { type Case, limits } from '../kit/fixture.js';
import { ALL } from '../kit/pausing.js';

const REASON = 'the key was leaked';

/** The actions of an entity's audit records with their plain data, in the order of time. */
async function history(limiter: RateLimiter): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for await (const { action, before, after } of limiter.audit.list(ALL)) found.push([action, before, after]);
  return found;
}

export const pauses: readonly Case[] = [
  {
    title: 'pausing and resuming an entity is audited with the end and the reason, and a repetition is not',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (let count = 0; count < 2; count++) await limiter.pause({ ...ALL, untilMs: 'forever', reason: REASON });
      await fixture.clock.advance(1_000);
      for (let count = 0; count < 2; count++) await limiter.resume(ALL);
      await fixture.catchUp();
      const paused = { paused: { reason: REASON } };
      assert.deepEqual(await history(limiter), [
        ['entity.pause', { paused: null }, paused],
        ['entity.resume', paused, { paused: null }],
      ]);
    },
  },
  {
    title: 'pausing and resuming a bucket is audited with the resource, the end and the reason',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      const untilMs = fixture.clock.now() + 60_000;
      await limiter.pause({ ...USER, untilMs, reason: REASON });
      await fixture.clock.advance(1_000);
      await limiter.resume(USER);
      await fixture.catchUp();
      const { resource } = USER;
      const [none, paused] = [
        { resource, paused: null },
        { resource, paused: { until: new Date(untilMs).toISOString(), reason: REASON } },
      ];
      assert.deepEqual(await history(limiter), [
        ['bucket.pause', none, paused],
        ['bucket.resume', paused, none],
      ]);
    },
  },
  {
    title: 'pausing an entity without a record creates one, and resuming it leaves the record',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.pause({ ...ALL, forMs: 60_000, reason: REASON });
      const until = new Date(fixture.clock.now() + 60_000);
      const entity = await limiter.entities.get(USER.entityId);
      assert.deepEqual([entity?.version, entity?.paused], [1, { until, reason: REASON }]);
      await limiter.resume(ALL);
      const resumed = await limiter.entities.get(USER.entityId);
      assert.deepEqual([resumed?.version, resumed?.paused], [2, undefined]);
    },
  },
  {
    title: 'resuming an entity or a bucket that does not exist creates nothing',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      for (const target of [ALL, USER]) assert.equal(await limiter.resume(target), false);
      assert.deepEqual([await limiter.entities.get(USER.entityId), await limiter.buckets.get(USER)], [null, null]);
    },
  },
  {
    title: 'an entity keeps its name, parent and metadata when it is paused, and its pause when it is changed',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.entities.create({ id: 'team' });
      const { id, ...fields } = { id: USER.entityId, name: 'Ann', parentId: 'team', cascade: true, metadata: { a: 1 } };
      await limiter.entities.create({ id, ...fields });
      await limiter.pause({ ...ALL, forMs: 'forever', reason: REASON });
      await limiter.entities.update(id, { metadata: { a: 2 }, parentId: null, cascade: false });
      const { createdAt: _, ...entity } = (await limiter.entities.get(id)) ?? assert.fail('no entity');
      const changed = { name: 'Ann', parentId: null, cascade: false, metadata: { a: 2 } };
      assert.deepEqual(entity, { id, ...changed, version: 3, paused: { until: null, reason: REASON } });
    },
  },
  {
    title: 'a paused entity cannot be deleted before it is resumed or its pause has ended',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.pause({ ...ALL, forMs: 60_000, reason: REASON });
      await assertRejects(limiter.entities.delete(USER.entityId), 'entity.conflict');
      await fixture.clock.advance(60_000);
      await limiter.entities.delete(USER.entityId);
      await limiter.pause({ ...ALL, forMs: 'forever', reason: REASON });
      await limiter.resume(ALL);
      await limiter.entities.delete(USER.entityId);
    },
  },
  {
    title: 'an update with the version from before a pause is refused',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      const { version } = await limiter.entities.create({ id: USER.entityId });
      await limiter.pause({ ...ALL, forMs: 'forever', reason: REASON });
      await assertRejects(limiter.entities.update(USER.entityId, { name: 'x', version }), 'entity.conflict');
    },
  },
  {
    title: 'buckets show their pause in get and list',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 60_000, reason: REASON });
      await limiter.acquire(ask({ rpm: 1 }, { resource: 'other' }));
      await fixture.catchUp();
      const paused = { until: new Date(fixture.clock.now() + 60_000), reason: REASON };
      assert.deepEqual((await limiter.buckets.get(USER))?.paused, paused);
      const { items } = await limiter.buckets.list(ALL);
      assert.deepEqual(
        items.map((bucket) => [bucket.resource, bucket.paused]),
        [
          [USER.resource, paused],
          ['other', undefined],
        ],
      );
    },
  },
  {
    title: 'setting and deleting the limits of a paused bucket leaves it paused, also for asks with per-call limits',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      await limiter.pause({ ...USER, forMs: 'forever', reason: REASON });
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpm:5/min') });
      await limiter.config.delete(USER);
      for (const other of [limiter, await fixture.limited('rpm:10/min')]) {
        for (const more of [{}, { limits: limits('rpm:2/min') }]) {
          assert.equal((await denial(other, ask({ rpm: 1 }, more))).reason, 'paused');
        }
      }
      assert.deepEqual(await limiter.config.get(USER), null);
    },
  },
  {
    title: 'bad input is refused before anything is paused',
    run: async (fixture) => {
      const limiter = await fixture.limited('rpm:10/min');
      const good = { ...USER, forMs: 1_000, reason: REASON };
      const nowMs = fixture.clock.now();
      const bad = [
        { ...good, entityId: '' },
        { ...good, resource: 'a b' },
        { ...good, reason: '' },
        { ...good, reason: 'x'.repeat(257) },
        { ...good, reason: 'two\nlines' },
        { ...good, forMs: 0 },
        { ...good, forMs: 1.5 },
        { ...good, untilMs: nowMs + 1 },
        { ...USER, reason: REASON },
        { ...USER, untilMs: nowMs, reason: REASON },
        { ...USER, untilMs: 9e15, reason: REASON },
        { ...good, until: 'tomorrow' },
      ];
      for (const request of bad) await assertRejects(limiter.pause(request), 'input.invalid');
      await assertRejects(limiter.resume({ entityId: 'a#b' }), 'input.invalid');
      assert.deepEqual([await limiter.entities.get(USER.entityId), await limiter.buckets.get(USER)], [null, null]);
    },
  },
];
