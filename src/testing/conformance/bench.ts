import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Backend, Call } from '../../backend.js';
import type { Clock } from '../../clock.js';
import { Limit } from '../../core/limit.js';
import type { LimiterOptions } from '../../limiter/options.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import type { FakeClock } from '../fake-clock.js';

/** One sentence about every store, and how to find out whether it holds. */
export interface Case {
  readonly title: string;
  readonly run: (bench: Bench) => Promise<void>;
  /** Why its asks are not made in groups too. */
  readonly alone?: string;
}

/** What a case works with: a store, a namespace of its own, and time that stands still. */
export interface Bench {
  readonly backend: Backend;
  readonly clock: FakeClock;
  readonly namespace: string;
  /** Another process: a limiter over the one store, with caches of its own. */
  limiter(options?: LimiterOptions): Promise<RateLimiter>;
  /** The same, with limits in code: `rpm:10/min`, `slots:2/concurrent`. */
  limited(...rules: string[]): Promise<RateLimiter>;
  /** Registers one more namespace, and gives its name. */
  register(): Promise<string>;
  /** What a call of the port brings along, now. */
  call(): Call;
  /** Resolves once usage and lists show everything that was written. */
  catchUp(): Promise<void>;
  /** Resolves once this many wait for the clock. */
  asleep(count: number): Promise<void>;
  /** Failures that no caller awaited. */
  readonly reported: readonly unknown[];
}

/** Marks a deadline of a store call, among all other sleeps. */
const DEADLINE_MS = 86_399_999;

export async function openBench(backend: Backend, clock: FakeClock, catchUp: () => Promise<void>): Promise<Bench> {
  const reported: unknown[] = [];
  const open = async (options: LimiterOptions): Promise<RateLimiter> =>
    RateLimiter.open(backend, {
      timeouts: { callMs: DEADLINE_MS, acquireMs: DEADLINE_MS },
      onError: (error) => reported.push(error),
      ...options,
      clock: withoutDeadlines(options.clock ?? clock, clock),
    });
  const inDefault = await open({ namespace: 'default' });
  const register = async (): Promise<string> => {
    const name = `case-${randomUUID()}`;
    await inDefault.namespaces.register(name);
    return name;
  };
  const namespace = await register();
  const registered = await inDefault.namespaces.get(namespace);
  const limiter = async (options: LimiterOptions = {}): Promise<RateLimiter> => open({ namespace, ...options });

  return {
    backend,
    clock,
    namespace,
    reported,
    limiter,
    limited: async (...rules) => limiter({ limits: limits(...rules) }),
    register,
    call: () => ({ namespaceId: registered?.id ?? namespace, nowMs: clock.now(), timeoutMs: DEADLINE_MS }),
    catchUp,
    asleep: async (count) => until(`${count} to wait for the clock`, () => clock.sleepers >= count),
  };
}

/** Real time that a store has to come to a point that the test waits for. */
const PATIENCE_MS = 10_000;

/** Lets the store answer until the condition holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `waited in vain for ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Limits as `Limit.parse` reads them. */
export function limits(...rules: string[]): Limit[] {
  return rules.map((rule) => Limit.parse(rule));
}

/**
 * The test's time jumps, so that a store which needs real time for its answer would always be late. A store that hangs
 * is found by the runner's own time-out.
 */
function withoutDeadlines(clock: Clock, { sleep }: FakeClock): Required<Clock> {
  return {
    now: () => clock.now(),
    sleep: async (ms, signal, options) => (ms === DEADLINE_MS ? untilAborted(signal) : sleep(ms, signal, options)),
  };
}

async function untilAborted(signal: AbortSignal | undefined): Promise<void> {
  await new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
