import { afterAll, expect, test } from 'vitest';
import { type Arena, Arenas, BUCKET } from '../support/features/arenas.js';
import { cellsOf } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

/** With an id, the call is sent twice and counts once. */
async function move({ limiter, account }: Arena, kind: 'charge' | 'credit', rpm: number, id?: string): Promise<void> {
  const request = { ...BUCKET, amounts: { rpm }, ...(id === undefined ? {} : { id }) };
  for (let sent = 0; sent < (id === undefined ? 1 : 2); sent++) await limiter[kind](request);
  account.spend(kind === 'charge' ? rpm : -rpm);
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: account.tokens });
}

test.each(cellsOf('charge'))(
  'after a %s on %s charges go into debt, credits stop at the capacity, and an id counts once',
  async (_, store, run) => {
    const arena = await arenas.open(store, '');
    await run(arena);
    expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
    await move(arena, 'charge', 6);
    await move(arena, 'charge', 90, 'invoice');
    expect((await arena.limiter.tryAcquire({ ...BUCKET, consume: { rpm: 1 } })).granted).toBe(false);
    await move(arena, 'credit', 14);
    await move(arena, 'credit', 300, 'back');
    await arena.limiter.acquire({ ...BUCKET, consume: { rpm: arena.account.capacity } });
  },
);
