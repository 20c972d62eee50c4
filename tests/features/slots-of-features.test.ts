import { afterAll, expect, test } from 'vitest';
import { type Arena, Arenas, ask, BUCKET, SLOTS } from '../support/features/arenas.js';
import { cellsOf } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

/** The slots that the leases of a write path still hold. */
const HELD: Readonly<Record<string, number>> = { extend: 1, reclaim: SLOTS };

async function freeSlots({ limiter }: Arena): Promise<number> {
  return (await limiter.available(BUCKET))['slots'] ?? Number.NaN;
}

async function after(store: Parameters<Arenas['open']>[0], options: string, run: (arena: Arena) => Promise<void>) {
  const arena = await arenas.open(store, options);
  await run(arena);
  return arena;
}

/** Every ask is granted; as many as there are free slots hold one, and the others are reported. */
async function expectShadow(arena: Arena, free: number): Promise<void> {
  const { limiter } = arena;
  expect(await freeSlots(arena)).toBe(free);
  const asks = Array.from({ length: free + 3 }, async () => limiter.tryAcquire(ask({ slots: 1 })));
  const decisions = await Promise.all(asks);
  const leases = decisions.flatMap((decision) => (decision.granted ? [decision.lease] : []));
  expect(leases).toHaveLength(free + 3);
  expect(decisions.filter(({ statuses }) => statuses.some(({ exceeded }) => exceeded))).toHaveLength(3);
  expect(leases.filter(({ consumed }) => consumed['slots'] === 1)).toHaveLength(free);
  expect(await freeSlots(arena)).toBe(0);
  // What was not taken is not given back.
  for (const lease of leases) await lease.rollback();
  expect(await freeSlots(arena)).toBe(free);
}

test.each(cellsOf('shadow'))(
  'after a %s on %s slots that are a shadow are held where they are free',
  async (path, store, run) => {
    const arena = await after(store, 'slots!shadow', run);
    await expectShadow(arena, SLOTS - (HELD[path] ?? 0));
  },
);

test.each(cellsOf('bypass'))('after a %s on %s a bypass holds slots where they are free', async (path, store, run) => {
  const arena = await after(store, '', run);
  await arena.limiter.entities.create({ id: BUCKET.entityId, bypass: true });
  await expectShadow(arena, SLOTS - (HELD[path] ?? 0));
});

test.each(cellsOf('atMost'))(
  'after a %s on %s an ask takes at most the slots that are free',
  async (path, store, run) => {
    const arena = await after(store, '', run);
    const free = SLOTS - (HELD[path] ?? 0);
    let taken = 0;
    // Each of two shards gives what it has.
    for (let asks = 0; asks < 20 && taken < free; asks++) {
      const decision = await arena.limiter.tryAcquire(ask({ slots: 9 }, { atMost: 'slots' }));
      if (decision.granted) taken += decision.lease.consumed['slots'] ?? Number.NaN;
      if (path !== 'split') expect(taken).toBe(free);
    }
    expect([taken, await freeSlots(arena)]).toEqual([free, 0]);
    expect(await arena.limiter.tryAcquire(ask({ slots: 9 }, { atMost: 'slots' }))).toMatchObject({ granted: false });
  },
);

test.each(cellsOf('near'))('after a %s on %s slots are near from their share on', async (path, store, run) => {
  const arena = await after(store, 'slots!warnAt=0.5', run);
  for (let held = HELD[path] ?? 0; ; held++) {
    const statuses = await arena.limiter.status(BUCKET);
    const isNear = statuses.some(({ limit, near }) => limit.name === 'slots' && near === true);
    expect([held, isNear]).toEqual([held, held >= SLOTS / 2]);
    if (held === SLOTS) return;
    await arena.limiter.acquire(ask({ slots: 1 }));
  }
});
