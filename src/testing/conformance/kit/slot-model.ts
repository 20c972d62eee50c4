import assert from 'node:assert/strict';
import type { Lease } from '../../../limiter/lease/lease.js';
import { ask, assertRejects, times, USER } from './asking.js';
import type { Fixture } from './fixture.js';
import { Random } from './random.js';

const CAPACITY = 7;

interface ModelHolder {
  readonly lease: Lease;
  readonly slots: number;
  expiresAtMs: number;
  /** Another ask reclaimed the expired holder. */
  gone: boolean;
}

/** Random acquires, extensions, endings and waits of three processes, compared with a plain list of holders. */
export async function slotModel(fixture: Fixture, seed: number): Promise<void> {
  const random = new Random(seed);
  const [first = assert.fail('no limiter'), ...rest] = await Promise.all(
    times(3, async () => fixture.limited(`slots:${CAPACITY}/concurrent`)),
  );
  let holders: ModelHolder[] = [];
  const free = (): number => CAPACITY - holders.reduce((sum, { slots, gone }) => sum + (gone ? 0 : slots), 0);
  const isOver = ({ expiresAtMs }: ModelHolder): boolean => expiresAtMs <= fixture.clock.now();

  const acquire = async (): Promise<void> => {
    const [slots, leaseTtlMs] = [random.whole(1, CAPACITY), random.whole(5_000, 20_000)];
    if (free() < slots) for (const holder of holders.filter(isOver)) holder.gone = true;
    const decision = await random.pick([first, ...rest]).tryAcquire(ask({ slots }, { leaseTtlMs }));
    if (decision.granted) {
      assert.ok(free() >= slots);
      holders.push({ lease: decision.lease, slots, expiresAtMs: fixture.clock.now() + leaseTtlMs, gone: false });
    } else {
      assert.equal(decision.retryAfterMs, waitFor(slots));
    }
  };

  const waitFor = (slots: number): number | null => {
    let room = free();
    const living = holders.filter(({ gone }) => !gone).toSorted((a, b) => a.expiresAtMs - b.expiresAtMs);
    for (const holder of living) {
      room += holder.slots;
      if (room >= slots) return holder.expiresAtMs - fixture.clock.now();
    }
    return null;
  };

  const change = async (): Promise<void> => {
    const holder = holders[random.whole(0, holders.length - 1)];
    if (holder === undefined) return;
    const verb = random.pick(['extend', 'extend', 'release', 'commit', 'rollback'] as const);
    if (verb === 'extend' && holder.gone) {
      await assertRejects(holder.lease.extend(), 'lease.closed');
    } else if (verb === 'extend') {
      await holder.lease.extend(9_000);
      holder.expiresAtMs = fixture.clock.now() + 9_000;
    } else {
      await holder.lease[verb]();
      holders = holders.filter((other) => other !== holder);
    }
  };

  const look = async (): Promise<void> => {
    const held = holders.reduce((sum, holder) => sum + (holder.gone || isOver(holder) ? 0 : holder.slots), 0);
    assert.deepEqual(await random.pick([first, ...rest]).available(USER), { slots: CAPACITY - held });
    const listed = (await first.leases.list(USER)).items.map(({ id }) => id);
    const kept = holders.filter(({ gone }) => !gone).map(({ lease }) => lease.id);
    assert.deepEqual(listed.toSorted(), kept.toSorted());
  };

  for (let step = 0; step < 500; step++) {
    // Time moves with every step, so that no two lease ids have the same time.
    await fixture.clock.advance(random.pick([1, random.whole(1, 500), random.whole(1, 5_000)]));
    await random.pick([acquire, acquire, change, look])();
  }
}
