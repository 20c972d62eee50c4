import assert from 'node:assert/strict';
import type { LevelAnswer, LevelAsk, LevelChange } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { changesBy } from '../../../core/bucket/holder-rules.js';
import { USER } from './asking.js';
import { type Fixture, type Case, limits } from './fixture.js';

/** A level with these limits as version `sequence` of its config. */
function level(sequence: number, ...rules: string[]): Pick<LevelAsk, 'limits' | 'version' | 'entityId' | 'resource'> {
  return { ...USER, limits: limits(...rules), version: { sequence, openedAtMs: 0 } };
}

function milli(tokens: Readonly<Record<string, number>>): Amount[] {
  return Object.entries(tokens).map(([name, count]) => ({ name, milli: count * 1_000 }));
}

async function consume(
  { backend, call }: Fixture,
  ref: ReturnType<typeof level>,
  tokens: Readonly<Record<string, number>>,
): Promise<{ readonly granted: boolean } & LevelAnswer> {
  const asked = { ...ref, asks: milli(tokens), holder: null };
  const outcome = await backend.consume(call(), { leaseId: null, levels: [asked] });
  assert.ok(outcome.kind !== 'id-taken');
  const [answer = assert.fail('no answer')] = outcome.levels;
  return { ...answer, granted: outcome.kind === 'granted' };
}

/** The available whole tokens by the bucket's own rules, and whether the given config is older than these. */
async function peek({ backend, call }: Fixture, ref: ReturnType<typeof level>): Promise<readonly [object, boolean]> {
  const [answer = assert.fail('no answer')] = await backend.peek(call(), [{ ...ref, asks: [], holder: null }]);
  const left = answer.verdicts.map(({ limit, effectiveMilli }) => [String(limit), Number(effectiveMilli) / 1_000]);
  return [Object.fromEntries(left) as object, answer.configIsOlder];
}

async function hold(fixture: Fixture, leaseId: string, slots: number): Promise<boolean> {
  const nowMs = fixture.clock.now();
  const holder = {
    acquiredAtMs: nowMs,
    expiresAtMs: nowMs + 60_000,
    slots: milli({ slots }),
    rates: null,
    caller: null,
  };
  const asked = { ...level(1, 'slots:5/concurrent'), asks: milli({ slots }), holder };
  return (await fixture.backend.consume(fixture.call(), { leaseId, levels: [asked] })).kind === 'granted';
}

async function correct(fixture: Fixture, leaseId: string, change: LevelChange): Promise<boolean> {
  const [result] = await fixture.backend.adjust(fixture.call(), { leaseId, levels: [change] });
  assert.equal(result?.kind, 'done');
  return result.holderLost;
}

const NOTHING = { amounts: [] } as const;

const versions: readonly Case[] = [
  {
    title: 'a bucket decides an ask with an older config by its own rules, and reports configIsOlder',
    run: async (fixture) => {
      await consume(fixture, level(2, 'rpm:10/min'), { rpm: 4 });
      const answer = await consume(fixture, level(1, 'rpm:3/min'), { rpm: 5 });
      assert.deepEqual([answer.granted, answer.configIsOlder], [true, true]);
      assert.equal(String(answer.verdicts[0]?.limit), 'rpm:10/min');
      assert.deepEqual(await peek(fixture, level(2, 'rpm:10/min')), [{ 'rpm:10/min': 1 }, false]);
    },
  },
  {
    title: 'a bucket applies a newer config once, and never an older one again',
    run: async (fixture) => {
      await consume(fixture, level(1, 'rpd:10/day'), { rpd: 1 });
      for (let count = 0; count < 3; count++) {
        assert.equal((await consume(fixture, level(2, 'rpd:5/day', 'tpd:7/day'), { tpd: 1 })).configIsOlder, false);
        assert.equal((await consume(fixture, level(1, 'rpd:10/day'), { rpd: 1 })).configIsOlder, true);
      }
      assert.deepEqual(await peek(fixture, level(2, 'rpd:5/day', 'tpd:7/day')), [
        { 'rpd:5/day': 2, 'tpd:7/day': 4 },
        false,
      ]);
    },
  },
  {
    title: 'a bucket ignores a different config with the version that it already has',
    run: async (fixture) => {
      await consume(fixture, level(1, 'rpm:10/min'), { rpm: 1 });
      assert.equal((await consume(fixture, level(1, 'rpm:3/min'), { rpm: 5 })).granted, true);
      assert.deepEqual(await peek(fixture, level(1, 'rpm:3/min')), [{ 'rpm:10/min': 4 }, false]);
    },
  },
  {
    title: 'of two configs in code the one that was opened later is newer, and any stored config is newer than both',
    run: async (fixture) => {
      const opened = (openedAtMs: number, rule: string) => ({
        ...level(0, rule),
        version: { sequence: 0, openedAtMs },
      });
      await consume(fixture, opened(5, 'rpm:10/min'), { rpm: 0 });
      await consume(fixture, opened(4, 'rpm:9/min'), { rpm: 0 });
      assert.deepEqual(await peek(fixture, opened(4, 'rpm:9/min')), [{ 'rpm:10/min': 10 }, true]);
      await consume(fixture, opened(6, 'rpm:8/min'), { rpm: 0 });
      await consume(fixture, level(1, 'rpm:7/min'), { rpm: 0 });
      assert.deepEqual(await peek(fixture, opened(7, 'rpm:6/min')), [{ 'rpm:7/min': 7 }, true]);
    },
  },
  {
    title: 'a peek with a newer config shows its result and writes nothing',
    run: async (fixture) => {
      await consume(fixture, level(1, 'rpm:10/min'), { rpm: 1 });
      assert.deepEqual(await peek(fixture, level(2, 'rpm:3/min', 'tpm:5/min')), [
        { 'rpm:3/min': 3, 'tpm:5/min': 5 },
        false,
      ]);
      assert.deepEqual(await peek(fixture, level(1, 'rpm:10/min')), [{ 'rpm:10/min': 9 }, false]);
    },
  },
  {
    title: 'a denied ask with a newer config applies the config',
    run: async (fixture) => {
      await consume(fixture, level(1, 'rpd:10/day'), { rpd: 1 });
      assert.equal((await consume(fixture, level(2, 'rpd:5/day'), { rpd: 6 })).granted, false);
      assert.deepEqual(await peek(fixture, level(1, 'rpd:10/day')), [{ 'rpd:5/day': 5 }, true]);
    },
  },
  {
    title: 'each config write gets a new sequence number, which increases over all levels',
    run: async (fixture) => {
      const limiter = await fixture.limiter();
      await limiter.config.setResource(USER.resource, { limits: limits('rpm:1/min') });
      await limiter.config.setSystem({ limits: limits('rpm:1/min') });
      await limiter.config.setEntity(USER.entityId, USER.resource, { limits: limits('rpm:1/min') });
      await limiter.config.setEntityDefault(USER.entityId, { limits: limits('rpm:1/min') });
      await limiter.config.delete({ entityId: USER.entityId });
      const { levels } = await fixture.backend.config.readFor(fixture.call(), USER.entityId, USER.resource);
      const order = [levels.resource, levels.system, levels.entity, levels.entityDefault].map(
        (config) => config?.v ?? 0,
      );
      assert.deepEqual([order.toSorted((a, b) => a - b), new Set(order).size], [order, 4]);
      assert.equal(levels.entityDefault?.limits, null);
    },
  },
];

const corrections: readonly Case[] = [
  {
    title: 'a refund to a bucket that no longer exists leaves it full, and a debit leaves it full less the debit',
    run: async (fixture) => {
      const ref = level(1, 'rpm:10/min', 'tpm:100/min');
      const change = { ...ref, amounts: changesBy(milli({ rpm: -3, tpm: 30 })), holder: 'none' } as const;
      assert.equal(await correct(fixture, 'lease-of-old', change), false);
      assert.deepEqual(await peek(fixture, ref), [{ 'rpm:10/min': 10, 'tpm:100/min': 70 }, false]);
    },
  },
  {
    title:
      'a correction with an older config changes balances but no limits, and ignores limits that the bucket does not have',
    run: async (fixture) => {
      await consume(fixture, level(2, 'rpm:10/min'), { rpm: 5 });
      const change = {
        ...level(1, 'rpm:3/min', 'tpm:9/min'),
        amounts: changesBy(milli({ rpm: 2, tpm: 2 })),
      };
      await correct(fixture, 'lease-of-old', { ...change, holder: 'none' });
      assert.deepEqual(await peek(fixture, level(2, 'rpm:10/min')), [{ 'rpm:10/min': 3 }, false]);
    },
  },
  {
    title: 'a release of a holder that no longer exists gives nothing back, and reports that the holder is lost',
    run: async (fixture) => {
      await hold(fixture, 'lease-one', 2);
      const release = { ...level(1, 'slots:5/concurrent'), ...NOTHING, holder: 'release' } as const;
      assert.equal(await correct(fixture, 'lease-two', release), true);
      assert.equal(await correct(fixture, 'lease-one', release), false);
      assert.equal(await correct(fixture, 'lease-one', release), true);
      assert.deepEqual(await peek(fixture, level(1, 'slots:5/concurrent')), [{ 'slots:5/concurrent': 5 }, false]);
    },
  },
  {
    title: 'two leases with the same id lose no slot, whether the second is granted or not',
    run: async (fixture) => {
      assert.equal(await hold(fixture, 'lease-one', 2), true);
      await hold(fixture, 'lease-one', 2);
      await correct(fixture, 'lease-one', { ...level(1, 'slots:5/concurrent'), ...NOTHING, holder: 'release' });
      assert.deepEqual(await peek(fixture, level(1, 'slots:5/concurrent')), [{ 'slots:5/concurrent': 5 }, false]);
    },
  },
  {
    title: 'an extension of a holder that no longer exists fails, and extends no other level of the lease',
    run: async (fixture) => {
      await hold(fixture, 'lease-one', 2);
      const [there, gone] = [USER, { ...USER, entityId: 'team' }];
      const expiresAtMs = fixture.clock.now() + 90_000;
      const extend = async (levels: (typeof USER | typeof gone)[]): Promise<boolean | string> =>
        fixture.backend.extend(fixture.call(), { leaseId: 'lease-one', levels, expiresAtMs });
      assert.equal(await extend([there, gone]), false);
      assert.equal(await extend([there]), true);
      const { items } = await fixture.backend.leases.list(fixture.call(), USER.entityId, USER.resource, {
        limit: 9,
        after: null,
      });
      assert.deepEqual(
        items.map(({ id, expiresAtMs: untilMs }) => [id, untilMs]),
        [['lease-one', expiresAtMs]],
      );
    },
  },
  {
    title: 'an ask takes from all its levels or from none, whichever level refuses',
    run: async (fixture) => {
      const refs = ['a', 'b', 'c'].map((entityId) => ({ ...level(1, 'rpm:10/min'), entityId }));
      for (const short of refs) {
        await consume(fixture, short, { rpm: 6 });
        const levels = refs.map((ref) => ({ ...ref, asks: milli({ rpm: 5 }), holder: null }));
        const outcome = await fixture.backend.consume(fixture.call(), { leaseId: null, levels });
        assert.equal(outcome.kind, 'denied');
        await correct(fixture, 'lease', { ...short, amounts: changesBy(milli({ rpm: -6 })), holder: 'none' });
        for (const ref of refs) assert.deepEqual(await peek(fixture, ref), [{ 'rpm:10/min': 10 }, false]);
      }
    },
  },
];

export const port: readonly Case[] = [...versions, ...corrections];
