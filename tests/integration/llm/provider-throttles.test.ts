import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch, type ProviderThrottle } from '../../../src/integrations/llm/index.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { REFUSAL_FORMATS, type RefusalFormat, startProvider } from '../../../src/testing/provider/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../support/dynamodb/world.js';
import { callOf, MODEL } from '../../support/llm/world.js';

const WAIT_MS = 12_340;
/** Formats that state no wait: the first pause is a second. */
const UNSTATED: readonly RefusalFormat[] = ['mistral', 'bedrock'];
const LIMITS = [Limit.perDay('rpm', 1_000_000), Limit.perDay('tpm', 100_000_000)];

describe.skipIf(ENGINE.missing)(`refusals of a provider among processes that share a table${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Two processes that serve a user each, of the same upstream key. */
  const openFleet = async (space: Space): Promise<readonly [RateLimiter, RateLimiter]> => {
    const one = await space.open({ limits: LIMITS });
    const other = await space.open({ limits: LIMITS });
    await one.entities.create({ id: 'upstream' });
    for (const id of ['user-1', 'user-2']) await one.entities.create({ id, parentId: 'upstream', cascade: true });
    await other.acquire({ entityId: 'user-2', resource: MODEL, consume: { rpm: 1 } });
    return [one, other];
  };

  test.each(REFUSAL_FORMATS)(
    'a refusal in the format of %s pauses the upstream key in all processes until the stated time, and at most 2 s longer',
    async (format) => {
      const space = await world.space();
      const [one, other] = await openFleet(space);
      const { clock } = space;
      // Not a whole second: instants in whole seconds are rounded.
      clock.set(clock.now() + 437);
      const throttles: ProviderThrottle[] = [];
      await using provider = await startProvider({ clock, plan: () => ({ refusal: { format, waitMs: WAIT_MS } }) });
      const limited = limitFetch(fetch, {
        limiter: one,
        entityId: 'user-1',
        upstream: 'upstream',
        clock,
        waitMs: 0,
        onProviderThrottle: (throttle) => throttles.push(throttle),
      });
      const refused = await limited(...callOf('chat', provider.url));
      expect([400, 429]).toContain(refused.status);
      expect(await refused.text()).not.toBe('');
      await limited.settled();
      const stated = UNSTATED.includes(format) ? 1_000 : WAIT_MS;

      const ask = { entityId: 'user-2', resource: MODEL, consume: { rpm: 1 } };
      const decision = await other.tryAcquire(ask);
      expect(decision).toMatchObject({
        granted: false,
        reason: 'paused',
        paused: { entityId: 'upstream', resource: MODEL },
      });
      const { retryAfterMs } = decision as { retryAfterMs: number };
      expect(retryAfterMs).toBeGreaterThanOrEqual(stated);
      expect(retryAfterMs).toBeLessThanOrEqual(stated + 2_000);
      expect(throttles).toMatchObject([{ entityId: 'upstream', pauseMs: retryAfterMs, isStated: stated === WAIT_MS }]);

      await clock.advance(retryAfterMs - 1);
      expect(await other.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'paused' });
      await clock.advance(1);
      expect(await other.tryAcquire(ask)).toMatchObject({ granted: true });
      // The refused call costs nothing.
      const bucket = await one.buckets.get({ entityId: 'user-1', resource: MODEL });
      expect(bucket?.limits.map(({ consumed }) => consumed)).toEqual([0, 0]);
      expect(space.errors).toEqual([]);
    },
  );

  test('pauses without a stated wait double with each refusal in a row, and a success begins anew', async () => {
    const space = await world.space();
    const [limiter] = await openFleet(space);
    const { clock } = space;
    const pauses: number[] = [];
    let refuses = true;
    const plan = () => (refuses ? { refusal: { format: 'bedrock', waitMs: 1 } as const } : {});
    await using provider = await startProvider({ clock, plan });
    const onProviderThrottle = ({ pauseMs }: ProviderThrottle): void => void pauses.push(pauseMs);
    const limited = limitFetch(fetch, { limiter, entityId: 'user-1', clock, waitMs: 0, onProviderThrottle });
    for (let call = 0; call < 8; call++) {
      await (await limited(...callOf('chat', provider.url))).text();
      await limited.settled();
      await clock.advance(pauses.at(-1) ?? 0);
    }
    refuses = false;
    await (await limited(...callOf('chat', provider.url))).text();
    refuses = true;
    await (await limited(...callOf('chat', provider.url))).text();
    await limited.settled();
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 1_000]);
  });

  test('of the refusals of calls that were under way together, only a later end is written', async () => {
    const space = await world.space();
    const [limiter] = await openFleet(space);
    const { clock } = space;
    let made = 0;
    const plan = () => ({ refusal: { format: 'openai', waitMs: (made += 1) === 3 ? 9_000 : 5_000 } as const });
    await using provider = await startProvider({ clock, plan });
    const limited = limitFetch(fetch, { limiter, entityId: 'user-1', upstream: 'upstream', clock, waitMs: 0 });
    await Promise.all(Array.from({ length: 12 }, async () => (await limited(...callOf('chat', provider.url))).text()));
    await limited.settled();
    const audited = (await limiter.audit.list({ entityId: 'upstream' })).items.filter(
      ({ action }) => action === 'bucket.pause',
    );
    expect(audited.length).toBeLessThanOrEqual(2);
    const bucket = await limiter.buckets.get({ entityId: 'upstream', resource: MODEL });
    expect(bucket?.paused?.until?.getTime()).toBe(clock.now() + 9_000);
    // A call that is admitted after the pause was ended by hand, and refused, pauses again.
    await limiter.resume({ entityId: 'upstream', resource: MODEL });
    await clock.advance(1);
    await (await limited(...callOf('chat', provider.url))).text();
    expect(await limiter.tryAcquire({ entityId: 'user-1', resource: MODEL, consume: { rpm: 1 } })).toMatchObject({
      reason: 'paused',
    });
  });

  test('calls that were under way together and are refused without a stated wait are one refusal in a row', async () => {
    const space = await world.space();
    const [limiter] = await openFleet(space);
    const { clock } = space;
    await using provider = await startProvider({ clock, plan: () => ({ refusal: { format: 'bedrock', waitMs: 1 } }) });
    const limited = limitFetch(fetch, { limiter, entityId: 'user-1', upstream: 'upstream', clock, waitMs: 0 });
    const pausedFor = async (calls: number): Promise<number> => {
      await Promise.all(
        Array.from({ length: calls }, async () => (await limited(...callOf('chat', provider.url))).text()),
      );
      await limited.settled();
      const bucket = await limiter.buckets.get({ entityId: 'upstream', resource: MODEL });
      return (bucket?.paused?.until?.getTime() ?? 0) - clock.now();
    };
    expect(await pausedFor(12)).toBe(1_000);
    await clock.advance(1_000);
    expect(await pausedFor(12)).toBe(2_000);
    const { items } = await limiter.audit.list({ entityId: 'upstream' });
    expect(items.filter(({ action }) => action === 'bucket.pause')).toHaveLength(2);
  });

  test('a pause that the store refuses does not cost the caller its answer', async () => {
    const space = await world.space();
    const [limiter] = await openFleet(space);
    const errors: string[] = [];
    await using provider = await startProvider({ plan: () => ({ refusal: { format: 'openai', waitMs: 500 } }) });
    const onError = (error: unknown, where: string): void => void errors.push(`${where}: ${String(error)}`);
    const pause = async (): Promise<never> => {
      throw new Error('no store');
    };
    const run = limiter.run.bind(limiter);
    const limited = limitFetch(fetch, { limiter: { run, pause }, entityId: 'user-1', onError, clock: space.clock });
    const response = await limited(...callOf('chat', provider.url));
    expect([response.status, response.headers.get('retry-after-ms')]).toEqual([429, '500']);
    expect(errors).toEqual(['pausing after a 429 of the provider: Error: no store']);
  });
});
