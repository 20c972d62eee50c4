import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type Provider, startProvider } from '../../../src/testing/provider/index.js';
import { ended, forkable } from '../../support/processes/fork-bundled.js';
import { consumedOf, ENTITY, LIMITS, MODEL } from '../../support/llm/world.js';

describe('a process that ends in the middle of a stream', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-llm-'));
  let provider: Provider;
  let start: Awaited<ReturnType<typeof forkable>>;

  beforeAll(async () => {
    provider = await startProvider({ plan: () => ({ outputTokens: 40, tokenDelayMs: 60_000 }) });
    start = await forkable(new URL('../../support/llm/stream-child.ts', import.meta.url));
  });
  afterAll(async () => {
    await provider.stop();
    rmSync(folder, { recursive: true });
  });

  /** The bucket after the process has ended, `laterMs` later. */
  const after = async (way: string, laterMs: number) => {
    const store = `file:${join(folder, `${way}-${laterMs}.db`)}`;
    expect(await ended(start(store, provider.url, way))).toBe(0);
    const clock = { now: () => systemClock.now() + laterMs };
    await using limiter = await RateLimiter.open(store, { limits: LIMITS, clock });
    const ask = { entityId: ENTITY, resource: MODEL, consume: { slots: 50 } };
    const decision = await limiter.tryAcquire(ask);
    const { tpm } = await consumedOf(limiter, ENTITY, MODEL);
    return { allSlotsFree: decision.granted, keepsEstimate: tpm >= 40 };
  };

  test('a process that closes its limiter gives its slots back at once, and keeps its estimate', async () => {
    expect(await after('close', 0)).toEqual({ allSlotsFree: true, keepsEstimate: true });
  });

  test('the slots of a process that exits at once are free after leaseTtlMs, and the estimate stays taken', async () => {
    expect(await after('exit', 0)).toEqual({ allSlotsFree: false, keepsEstimate: true });
    expect(await after('exit', 61_000)).toEqual({ allSlotsFree: true, keepsEstimate: true });
  });
});
