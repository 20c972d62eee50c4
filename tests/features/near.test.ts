import { afterAll, expect, test } from 'vitest';
import type { LimitStatus } from '../../src/core/bucket/decide.js';
import { type Arena, Arenas, BUCKET } from '../support/features/arenas.js';
import { cellsOf } from '../support/features/write-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

const WARN_AT = 0.6;

function nearOf(statuses: readonly LimitStatus[]): boolean {
  return statuses.some(({ limit, near }) => limit.name === 'rpm' && near === true);
}

/** Whether the model says that the share is used. */
function isNear({ account }: Arena): boolean {
  return account.capacity - account.tokens >= WARN_AT * account.capacity;
}

/** Takes down to one token above the share, then token by token: the first that reaches it is near. */
async function expectNear(arena: Arena, isSplit: boolean): Promise<void> {
  const { limiter, account } = arena;
  expect(nearOf(await limiter.status(BUCKET))).toBe(isNear(arena));
  for (let step = 0; step < 3 && account.tokens > 0; step++) {
    const above = account.tokens - (1 - WARN_AT) * account.capacity;
    const rpm = above > 1 ? above - 1 : 1;
    const { granted, statuses } = await limiter.tryAcquire({ ...BUCKET, consume: { rpm } });
    if (!granted) break;
    account.spend(rpm);
    // A bucket in two shards is near by the shard that was asked: only the status sees both.
    if (!isSplit) expect(nearOf(statuses)).toBe(isNear(arena));
    expect(nearOf(await limiter.status(BUCKET))).toBe(isNear(arena));
  }
}

test.each(cellsOf('near'))('after a %s on %s the limit is near from its share on', async (path, store, run) => {
  const arena = await arenas.open(store, `!warnAt=${WARN_AT}`);
  await run(arena);
  expect(await arena.limiter.available(BUCKET)).toMatchObject({ rpm: arena.account.tokens });
  await expectNear(arena, path === 'split');
});
