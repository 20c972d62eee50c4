import { afterAll, expect, test } from 'vitest';
import { type Arena, Arenas, BUCKET } from '../support/features/arenas.js';
import { cellsOf } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

/** What one ask for at most this many tokens takes; 0: it is denied. */
async function taken({ limiter }: Arena, rpm: number): Promise<number> {
  const decision = await limiter.tryAcquire({ ...BUCKET, consume: { rpm }, atMost: 'rpm' });
  return decision.granted ? (decision.lease.consumed['rpm'] ?? Number.NaN) : 0;
}

/** What an eager account gives: everything up to the amount, in whole tokens. */
function given({ account }: Arena, rpm: number): number {
  return Math.max(0, Math.min(rpm, Math.floor(account.tokens)));
}

/** Asks that may be cut take what the model has, and a rollback gives exactly that back. */
async function expectCut(arena: Arena): Promise<void> {
  const { limiter, account } = arena;
  const half = Math.ceil(account.tokens / 2);
  expect(await taken(arena, half)).toBe(given(arena, half));
  account.spend(given(arena, half));
  const decision = await limiter.tryAcquire({ ...BUCKET, consume: { rpm: 1_000 }, atMost: 'rpm' });
  expect(decision.granted ? decision.lease.consumed : {}).toEqual(
    account.tokens < 1 ? {} : { rpm: given(arena, 1_000) },
  );
  if (decision.granted) await decision.lease.rollback();
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: account.tokens });
  expect(await taken(arena, 1_000)).toBe(given(arena, 1_000));
  account.spend(given(arena, 1_000));
  expect(await taken(arena, 5)).toBe(0);
}

/** Two shards give what each of them has: together everything, and never more. */
async function expectCutOfShards(arena: Arena): Promise<void> {
  const { limiter, account } = arena;
  let sum = 0;
  for (let asks = 0; asks < 20 && sum < account.tokens; asks++) sum += await taken(arena, 1_000);
  expect(sum).toBe(account.tokens);
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: 0 });
  expect(await taken(arena, 5)).toBe(0);
}

test.each(cellsOf('atMost'))('after a %s on %s an ask takes at most what there is', async (path, store, run) => {
  const arena = await arenas.open(store, '');
  await run(arena);
  expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
  await (path === 'split' ? expectCutOfShards(arena) : expectCut(arena));
});
