import { afterAll, expect, test } from 'vitest';
import { type Arena, Arenas, BUCKET } from '../support/features/arenas.js';
import { cellsOf } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

/** Every ask is granted; those that fit are taken, and the others are reported and leave the balance as it is. */
async function expectShadow({ limiter, account }: Arena): Promise<void> {
  const { tokens } = account;
  const room = Math.max(0, tokens);
  const asks = Array.from({ length: room + 5 }, async () => limiter.tryAcquire({ ...BUCKET, consume: { rpm: 1 } }));
  const decisions = await Promise.all(asks);
  expect(decisions.every((decision) => decision.granted)).toBe(true);
  const exceeded = decisions.filter(({ statuses }) => statuses.some((status) => status.exceeded));
  expect(exceeded).toHaveLength(5);
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: tokens - room });
  // What was not taken is not given back.
  for (const decision of exceeded) if (decision.granted) await decision.lease.rollback();
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: tokens - room });
}

test.each(cellsOf('shadow'))(
  'after a %s on %s a shadow takes what fits and reports the rest',
  async (_, store, run) => {
    const arena = await arenas.open(store, '!shadow');
    await run(arena);
    expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
    await expectShadow(arena);
  },
);

test.each(cellsOf('bypass'))(
  'after a %s on %s the limits of an entity with bypass are shadows',
  async (_, store, run) => {
    const arena = await arenas.open(store, '');
    await arena.limiter.entities.create({ id: BUCKET.entityId, bypass: true });
    await run(arena);
    expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
    await expectShadow(arena);
  },
);
