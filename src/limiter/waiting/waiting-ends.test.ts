import fc from 'fast-check';
import { expect, test } from 'vitest';
import { distantBackend } from '../../../tests/support/models/distant-backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { isHeadgateError } from '../../core/errors.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import type { Lease } from '../lease/lease.js';
import { RateLimiter } from '../rate-limiter.js';

/** Each of them may replace another while calls wait. */
const CONFIGS = [
  ['rpm:60/min:5!reserve.batch=0.4', 'slots:2/concurrent!reserve.batch=0.5'],
  ['rpm:60/min:2!reserve.batch=0.4', 'slots:1/concurrent'],
  ['rpm:60/min:5!shadow!reserve.batch=0.4', 'slots:3/concurrent'],
  ['rpm:unlimited!reserve.batch=0.4', 'slots:2/concurrent!shadow'],
  ['rpm:2/concurrent!reserve.batch=0.5', 'slots:100/sec'],
].map((texts) => texts.map((text) => Limit.parse(text)));

const entityId = fc.constantFrom('user-1', 'user-2', 'team');
interface Asked {
  readonly entityId: string;
  readonly consume: { readonly rpm: number; readonly slots: number };
  readonly waitMs: number;
  readonly hasClass: boolean;
  readonly isCut: boolean;
}

const ask: fc.Arbitrary<Asked> = fc.record({
  entityId,
  consume: fc.record({ rpm: fc.nat({ max: 4 }), slots: fc.nat({ max: 2 }) }),
  waitMs: fc.constantFrom(1, 500, 3_000, 20_000),
  hasClass: fc.boolean(),
  isCut: fc.boolean(),
});

type Step = (run: Run) => unknown;

/** Steps are not awaited, as in a process whose calls run side by side. */
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: ask.map(
      (asked): Step =>
        (run) =>
          run.ask(asked),
    ),
  },
  {
    weight: 6,
    arbitrary: fc.constantFrom(0, 1, 100, 1_000, 5_000).map(
      (ms): Step =>
        (run) =>
          run.pass(ms),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constantFrom('commit', 'rollback', 'release'), fc.nat()).map(
      ([end, at]): Step =>
        (run) =>
          run.leases[at % Math.max(1, run.leases.length)]?.[end](),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.nat().map(
      (at): Step =>
        (run) =>
          run.stops[at % Math.max(1, run.stops.length)]?.abort(),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(entityId, fc.constantFrom(...CONFIGS)).map(
      ([id, limits]): Step =>
        ({ limiter }) =>
          limiter.config.setEntity(id, 'gpt-4', { limits }),
    ),
  },
  {
    weight: 1,
    arbitrary: entityId.map(
      (id): Step =>
        ({ limiter }) =>
          limiter.pause({ entityId: id, forMs: 1_500, reason: 'test' }),
    ),
  },
  {
    weight: 1,
    arbitrary: entityId.map(
      (id): Step =>
        ({ limiter }) =>
          limiter.resume({ entityId: id }),
    ),
  },
  {
    weight: 1,
    arbitrary: entityId.map(
      (id): Step =>
        ({ limiter }) =>
          limiter.buckets.reset({ entityId: id, resource: 'gpt-4' }),
    ),
  },
);

/** One process with its calls, on a store that is 20 ms away. */
class Run {
  readonly clock = fakeClock();
  readonly limiter: RateLimiter;
  readonly leases: Lease[] = [];
  readonly stops: AbortController[] = [];
  readonly #waiting = new Map<object, number>();
  readonly #calls: readonly string[];
  #passedMs = 0;

  constructor() {
    const { backend, calls } = distantBackend(memory(), this.clock, 20);
    this.#calls = calls;
    this.limiter = new RateLimiter(backend, { clock: this.clock, onError: () => {} });
  }

  async start(): Promise<void> {
    await this.limiter.config.setSystem({ limits: CONFIGS[0]! });
    await this.limiter.entities.create({ id: 'team' });
    for (const id of ['user-1', 'user-2']) {
      await this.limiter.entities.create({ id, parentId: 'team', cascade: true });
    }
  }

  async ask({ waitMs, hasClass, isCut, ...request }: Asked): Promise<void> {
    const stop = new AbortController();
    this.stops.push(stop);
    // The wait, and the longest time of an acquire.
    this.#waiting.set(stop, this.#passedMs + waitMs + 2_000);
    try {
      const decision = await this.limiter.tryAcquire({
        ...request,
        resource: 'gpt-4',
        signal: stop.signal,
        wait: { timeoutMs: waitMs },
        ...(hasClass ? { priority: 'batch' } : {}),
        ...(isCut && request.consume.rpm > 0 ? { atMost: 'rpm' } : {}),
      });
      if (decision.granted) this.leases.push(decision.lease);
    } catch (error) {
      if (!stop.signal.aborted && !isHeadgateError(error, 'input.invalid')) throw error;
    } finally {
      this.#waiting.delete(stop);
    }
  }

  /**
   * A waiter asks every 100 ms at most. One that asked again with each answer would ask every 20 ms. Further steps may ask
   * while the time passes.
   */
  async pass(ms: number): Promise<void> {
    const before = this.#calls.length;
    const earlier = this.stops.length - this.#waiting.size;
    await this.clock.advance(ms);
    const waiters = this.stops.length - earlier;
    expect(this.#calls.length).toBeLessThanOrEqual(before + 20 * this.stops.length + (waiters * ms) / 50);
    this.#passedMs += ms;
    for (const endMs of this.#waiting.values()) expect(endMs).toBeGreaterThanOrEqual(this.#passedMs);
  }
}

test('every wait ends in time without many asks, and leaves no waiter, timer or slot behind, whatever happens meanwhile', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), async (steps) => {
    const run = new Run();
    await run.start();
    const underWay: Promise<unknown>[] = [];
    for (const take of steps) {
      const taken = Promise.resolve(take(run));
      underWay.push(taken.catch((error: unknown) => expect(isHeadgateError(error)).toBe(true)));
      await run.clock.advance(0);
    }
    await run.pass(25_000);
    expect(run.limiter.waiting()).toEqual([]);
    await Promise.all(underWay);
    const ends = Promise.all(run.leases.map((lease) => lease.commit().catch(() => {})));
    await run.pass(1_000);
    await ends;
    expect([run.clock.sleepers, (await run.limiter.leases.list()).items]).toEqual([0, []]);
    await run.limiter.close();
  });
  await fc.assert(property, { numRuns: 60 });
});
