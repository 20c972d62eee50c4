import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShardEngine, startShardEngine } from '../../../../tests/support/dynamodb/shard/shard-engine.js';
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
import {
  connectionBroken,
  losing,
  openProcess,
  type Process,
  type Tap,
  tapped,
} from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import { findEngine } from '../../../testing/dynamodb/index.js';
import type { ShardImage } from '../table/items.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const RPM = Limit.perMinute('rpm', 60);
const SLOTS = Limit.concurrent('slots', 3);

describe.skipIf(found.status === 'unavailable')(`group writes without an answer${reason}`, () => {
  let engine: ShardEngine;
  let namespaces = 0;

  beforeAll(async () => void (engine = await startShardEngine()));
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const half = withTokens(imageOf([RPM, SLOTS], { baseMs: NOW_MS }), 30_000, 2_000);
  const carrying = withHolders(half, { lease: { slots: [amount('slots', 1_000)], rates: [amount('rpm', 10_000)] } });

  /** A stored shard, a process that has it cached, and another process that may write in between. */
  async function shard(image: ShardImage | null, tap: (other: Process) => Tap) {
    const ns = `loss${(namespaces += 1)}`;
    if (image !== null) await engine.put(ns, image);
    const other = openProcess(engine.table, ns);
    const process = openProcess(tapped(engine.table, tap(other)), ns);
    if (image !== null) process.shard.see(image, NOW_MS);
    const stored = async () => {
      const read = (await engine.read(ns, KEY))!;
      const balance = (name: string) => read.limits.find(({ limit }) => limit.name === name);
      return {
        rpm: balance('rpm')?.tokensMilli,
        rpmConsumed: balance('rpm')?.consumedMilli,
        slots: balance('slots')?.tokensMilli,
        acquires: read.acquires,
        holders: [...read.holders.keys()],
        image: read,
      };
    };
    return { process, other, stored };
  }

  const take = askEntry([RPM, SLOTS], { rpm: 1_000 });
  const otherTake = (other: Process) => async () => other.submit(askEntry([RPM, SLOTS], { rpm: 5_000 }));
  const hold = askEntry(
    [RPM, SLOTS],
    { rpm: 1_000, slots: 1_000 },
    {
      leaseId: 'mine',
      holder: holderOf({ slots: [amount('slots', 1_000)] }),
    },
  );

  test.each([true, false])(
    'a take without an answer counts once if no other process wrote (landed: %s)',
    async (lands) => {
      const { process, stored } = await shard(half, () => losing({ lands }));
      expect(await process.submit(take)).toMatchObject({ kind: 'granted' });
      expect(await stored()).toMatchObject({ rpm: 29_000, rpmConsumed: 1_000, acquires: 4 });
    },
  );

  test.each([true, false])(
    'a take that creates the bucket and gets no answer counts once (landed: %s)',
    async (lands) => {
      const { process, stored } = await shard(null, () => losing({ lands }));
      expect(await process.submit(take)).toMatchObject({ kind: 'granted' });
      expect(await stored()).toMatchObject({ rpm: 59_000, acquires: 1 });
    },
  );

  test('a take without an answer counts at most twice after another write, which is the strict side', async () => {
    const { process, stored } = await shard(half, (other) => losing({ lands: true, meanwhile: otherTake(other) }));
    expect(await process.submit(take)).toMatchObject({ kind: 'granted' });
    expect(await stored()).toMatchObject({ rpm: 30_000 - 5_000 - 2_000, acquires: 6 });
  });

  test.each([true, false])(
    'a take of a slot without an answer counts once even after another write, because its holder shows it (landed: %s)',
    async (lands) => {
      const { process, stored } = await shard(half, (other) => losing({ lands, meanwhile: otherTake(other) }));
      expect(await process.submit(hold)).toMatchObject({ kind: 'granted' });
      expect(await stored()).toMatchObject({ rpm: 24_000, slots: 1_000, acquires: 5, holders: ['mine'] });
    },
  );

  describe('refunds without a holder', () => {
    const refund = changeEntry([RPM, SLOTS], { rpm: -5_000 });

    test('a refund without an answer is found to have landed if no other process wrote', async () => {
      const { process, stored } = await shard(half, () => losing({ lands: true }));
      expect(await process.submit(refund)).toEqual({ kind: 'done', holderLost: false });
      expect(await stored()).toMatchObject({ rpm: 35_000, rpmConsumed: -5_000 });
    });

    test('a refund without an answer is found to have landed even if its image came from a refused write', async () => {
      const { process, other, stored } = await shard(half, () => losing({ lands: true, after: 1 }));
      // The base moves, so the first write is refused.
      await other.submit(
        askEntry([RPM, SLOTS, Limit.perDay('new', 5)], {}, { version: { sequence: 2, openedAtMs: 0 } }),
      );
      expect(await process.submit(refund)).toEqual({ kind: 'done', holderLost: false });
      expect(await stored()).toMatchObject({ rpmConsumed: -5_000 });
    });

    test.each([
      ['it did not land', false, 30_000],
      ['another process wrote, so that nothing shows whether it landed', true, 35_000 - 5_000],
    ])(
      'a refund without an answer is not sent again if %s: the call rejects, and the refund counts at most once',
      async (_, lands, left) => {
        const meanwhile = lands ? otherTake : () => undefined;
        const { process, stored } = await shard(half, (other) => {
          const others = meanwhile(other);
          return losing({ lands, ...(others === undefined ? {} : { meanwhile: others }) });
        });
        await expect(process.submit(refund)).rejects.toMatchObject({ code: 'backend.unavailable' });
        expect((await stored()).rpm).toBe(left);
      },
    );

    test.each([true, false])(
      'a refund without an answer is not sent again after the asks of its group gave up (landed: %s)',
      async (lands) => {
        let writes = 0;
        const { process, stored } = await shard(half, (other) => async (operation, forward) => {
          writes += 1;
          if (operation !== 'UpdateItem' || writes > 4) return forward();
          if (writes > 1) throw Object.assign(new Error('conflict'), { name: 'TransactionConflictException' });
          if (lands) await forward();
          await otherTake(other)();
          throw connectionBroken();
        });
        const told = await process.together([take, refund], { tuning: { maxRetries: 2 } });
        expect(told).toMatchObject([
          { kind: 'contended' },
          { kind: 'rejected', error: { code: 'backend.unavailable' } },
        ]);
        expect((await stored()).rpmConsumed).toBe(lands ? 5_000 + 1_000 - 5_000 : 5_000);
      },
    );

    test('a refund is known to have landed if the group also took a slot, because its holder shows it', async () => {
      const { process, stored } = await shard(half, (other) => losing({ lands: true, meanwhile: otherTake(other) }));
      const told = await process.together([hold, refund]);
      expect(told).toMatchObject([{ kind: 'granted' }, { kind: 'done' }]);
      expect((await stored()).rpmConsumed).toBe(5_000 + 1_000 - 5_000);
    });

    test('a refund is not known to have landed by a holder that was in two writes', async () => {
      let writes = 0;
      const { process, stored } = await shard(half, (other) => async (operation, forward) => {
        if (operation !== 'UpdateItem' || (writes += 1) > 2) return forward();
        // The first write is lost on the way. The second lands without its refund, and another process writes next.
        if (writes === 2) await forward();
        if (writes === 2) await otherTake(other)();
        throw connectionBroken();
      });
      const told = await process.together([hold, refund]);
      expect(told).toMatchObject([{ kind: 'granted' }, { kind: 'rejected' }]);
      expect(await stored()).toMatchObject({ rpmConsumed: 5_000 + 1_000, slots: 1_000 });
    });
  });

  describe('corrections with a holder', () => {
    const settle = changeEntry(
      [RPM, SLOTS],
      { rpm: -4_000 },
      { leaseId: 'lease', holder: 'keep', totals: { rpm: 6_000 } },
    );
    const release = changeEntry(
      [RPM, SLOTS],
      { rpm: -4_000 },
      { leaseId: 'lease', holder: 'release', totals: { rpm: 6_000 } },
    );

    test.each([true, false])(
      'a settle that keeps its holder counts once even after another write (landed: %s)',
      async (lands) => {
        const { process, stored } = await shard(carrying, (other) => losing({ lands, meanwhile: otherTake(other) }));
        expect(await process.submit(settle)).toEqual({ kind: 'done', holderLost: false });
        expect(await stored()).toMatchObject({ rpm: 30_000 + 4_000 - 5_000, rpmConsumed: 5_000 - 4_000 });
      },
    );

    test.each([true, false])(
      'a release without an answer counts once and frees its slots once (landed: %s)',
      async (lands) => {
        const { process, stored } = await shard(carrying, (other) => losing({ lands, meanwhile: otherTake(other) }));
        expect(await process.submit(release)).toEqual({ kind: 'done', holderLost: false });
        expect(await stored()).toMatchObject({ rpm: 29_000, rpmConsumed: 1_000, slots: 3_000, holders: [] });
      },
    );

    test.each([true, false])('an extension without an answer finds its holder (landed: %s)', async (lands) => {
      const { process, stored } = await shard(carrying, (other) => losing({ lands, meanwhile: otherTake(other) }));
      expect(await process.submit(extendEntry('lease', NOW_MS + 99_000))).toEqual({ kind: 'extended', found: true });
      expect((await stored()).image.holders.get('lease')?.expiresAtMs).toBe(NOW_MS + 99_000);
    });

    test('an unchanged holder proves nothing: a refund beside it is lost or counts once', async () => {
      const adjust = changeEntry([RPM, SLOTS], { rpm: -4_000 }, { leaseId: 'lease', holder: 'keep' });
      const { process, stored } = await shard(carrying, (other) =>
        losing({ lands: true, meanwhile: otherTake(other) }),
      );
      await expect(process.submit(adjust)).rejects.toMatchObject({ code: 'backend.unavailable' });
      expect(await stored()).toMatchObject({ rpm: 30_000 + 4_000 - 5_000 });
    });

    test('an unchanged holder does not prove that a take of the same group landed', async () => {
      const same = changeEntry([RPM, SLOTS], {}, { leaseId: 'lease', holder: 'keep', totals: { rpm: 10_000 } });
      const rebase = (other: Process) => async () =>
        other.submit(askEntry([RPM, SLOTS, Limit.perDay('new', 5)], {}, { version: { sequence: 2, openedAtMs: 0 } }));
      const { process, stored } = await shard(carrying, (other) => losing({ lands: false, meanwhile: rebase(other) }));
      expect(await process.together([same, take])).toMatchObject([
        { kind: 'done', holderLost: false },
        { kind: 'granted' },
      ]);
      expect((await stored()).rpmConsumed).toBe(1_000);
    });

    test('a settle that was rejected although it had landed counts once when it is repeated, and takes of that group count', async () => {
      const { process, stored } = await shard(carrying, () => losing({ lands: true, times: 3 }));
      await expect(process.submit(settle)).rejects.toMatchObject({ code: 'backend.unavailable' });
      expect(await process.together([settle, take])).toMatchObject([
        { kind: 'done', holderLost: false },
        { kind: 'granted' },
      ]);
      expect(await stored()).toMatchObject({ rpmConsumed: -4_000 + 1_000, acquires: 4 });
    });

    test.each([true, false])(
      'a release is not reported as done if another process reclaimed its holder (sent again: %s)',
      async (isLost) => {
        // The clock of the other process is ahead: for it the lease has expired.
        const theirs = askEntry(
          [RPM, SLOTS],
          { slots: 3_000 },
          { leaseId: 'theirs', holder: holderOf({ slots: [amount('slots', 3_000)] }), nowMs: NOW_MS + 60_000 },
        );
        const reclaim = (other: Process) => async () => other.submit(theirs);
        const { process, other, stored } = await shard(carrying, (others) =>
          losing({ lands: false, times: isLost ? 1 : 0, meanwhile: reclaim(others) }),
        );
        if (!isLost) await reclaim(other)();
        const late = changeEntry([RPM, SLOTS], {}, { leaseId: 'lease', holder: 'release' });
        expect(await process.submit(late)).toEqual({ kind: 'done', holderLost: true });
        expect(await stored()).toMatchObject({ slots: 0, holders: ['theirs'] });
      },
    );

    test('a release that was rejected although it had landed finds its holder lost when it is repeated: its slots are freed once, and takes of that group count', async () => {
      const { process, stored } = await shard(carrying, () => losing({ lands: true, times: 3 }));
      await expect(process.submit(release)).rejects.toMatchObject({ code: 'backend.unavailable' });
      expect(await process.together([release, take])).toMatchObject([
        { kind: 'done', holderLost: true },
        { kind: 'granted' },
      ]);
      expect(await stored()).toMatchObject({ slots: 3_000, acquires: 4 });
    });
  });

  test('a write without an answer is sent at most three times; then its callers get an error', async () => {
    let writes = 0;
    const { process, stored } = await shard(half, () => async (operation, forward) => {
      if (operation !== 'UpdateItem') return forward();
      writes += 1;
      throw connectionBroken();
    });
    await expect(process.submit(take)).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'connection' });
    expect(writes).toBe(3);
    expect(await stored()).toMatchObject({ rpm: 30_000 });
  });

  test("a write that the caller's own SDK client repeats counts once", async () => {
    const { process, stored } = await shard(half, () => async (operation, forward) => {
      if (operation === 'UpdateItem') await forward();
      return forward();
    });
    expect(await process.submit(take)).toMatchObject({ kind: 'granted' });
    expect(await process.submit(changeEntry([RPM, SLOTS], { rpm: -500 }))).toEqual({ kind: 'done', holderLost: false });
    expect(await stored()).toMatchObject({ rpm: 29_500, acquires: 4 });
  });

  test.each([
    ['stays', { holder: 'keep', totals: { rpm: 6_000 } }],
    ['is removed', { holder: 'release', totals: { rpm: 6_000 } }],
    ['is removed without totals of rates', { holder: 'release' }],
  ] as const)(
    'a write that an SDK client repeats after another write gives nothing back twice if a holder %s',
    async (_, fate) => {
      const change = changeEntry([RPM, SLOTS], { rpm: -4_000 }, { leaseId: 'lease', ...fate });
      let isFirst = true;
      const { process, stored } = await shard(carrying, (other) => async (operation, forward) => {
        if (operation === 'UpdateItem' && isFirst) {
          isFirst = false;
          await forward();
          await otherTake(other)();
        }
        return forward();
      });
      expect(await process.submit(change)).toEqual({ kind: 'done', holderLost: false });
      expect(await stored()).toMatchObject({
        rpm: 30_000 + 4_000 - 5_000,
        slots: fate.holder === 'keep' ? 2_000 : 3_000,
      });
    },
  );

  test.each([true, false])(
    'a settlement without an answer is sent again and settles the rules once (landed: %s)',
    async (lands) => {
      const { process, stored } = await shard(half, () => losing({ lands }));
      const raised = askEntry(
        [Limit.perMinute('rpm', 600), SLOTS],
        { rpm: 1_000 },
        { version: { sequence: 2, openedAtMs: 0 } },
      );
      expect(await process.submit(raised)).toMatchObject({ kind: 'granted' });
      expect(await stored()).toMatchObject({
        rpm: 29_001,
        acquires: 4,
        image: { baseMs: NOW_MS + 1, version: { sequence: 2 } },
      });
    },
  );

  test.each([true, false])('a reclaim without an answer gives back once (landed: %s)', async (lands) => {
    const { process, stored } = await shard(withTokens(carrying, 30_000, 0), () => losing({ lands }));
    const late = { ...hold, nowMs: NOW_MS + 60_000 };
    expect(await process.submit(late)).toMatchObject({ kind: 'granted' });
    expect(await stored()).toMatchObject({ slots: 0, holders: ['mine'], image: { expired: 1 } });
  });

  test('a write that never gets an answer rejects with BackendUnavailable', async () => {
    const { process } = await shard(half, () => losing({ lands: false, times: 9 }));
    await expect(process.submit(take)).rejects.toBeInstanceOf(BackendUnavailable);
  });
});
