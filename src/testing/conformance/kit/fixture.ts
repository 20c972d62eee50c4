import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Backend, Call } from '../../../backend.js';
import type { Clock } from '../../../clock.js';
import { Limit } from '../../../core/limit.js';
import type { LimiterOptions } from '../../../limiter/options.js';
import { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { FakeClock } from '../../fake-clock.js';

/** One statement about every store, and the check of it. */
export interface Case {
  readonly title: string;
  readonly run: (fixture: Fixture) => Promise<void>;
  /** Why the case does not run a second time with its asks in groups. */
  readonly alone?: string;
}

/** The environment of a case: a store, its own namespace, and a fake clock. */
export interface Fixture {
  readonly backend: Backend;
  readonly clock: FakeClock;
  readonly namespace: string;
  /** Opens a limiter on the store with separate caches, like another process. */
  limiter(options?: LimiterOptions): Promise<RateLimiter>;
  /** Opens a limiter with limits in code, such as `rpm:10/min`, `slots:2/concurrent`. */
  limited(...rules: string[]): Promise<RateLimiter>;
  /** Registers another namespace and returns its name. */
  register(): Promise<string>;
  /** The fields of a port call at the current time. */
  call(): Call;
  /** Resolves when usage and lists show everything that was written. */
  catchUp(): Promise<void>;
  /** Resolves when this many calls sleep on the clock. */
  asleep(count: number): Promise<void>;
  /** Failures that no caller awaited. */
  readonly reported: readonly unknown[];
}

/** Distinguishes the deadlines of store calls from other sleeps. */
const DEADLINE_MS = 86_399_999;

export async function openFixture(backend: Backend, clock: FakeClock, catchUp: () => Promise<void>): Promise<Fixture> {
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

/** The longest real time that a test waits for a condition. */
const MAX_WAIT_MS = 10_000;

/** Lets the store continue until the condition holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + MAX_WAIT_MS;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `waited in vain for ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Limits in the format of `Limit.parse`. */
export function limits(...rules: string[]): Limit[] {
  return rules.map((rule) => Limit.parse(rule));
}

/**
 * The test's time jumps, so a store that needs real time for its answer would always be late. The timeout of the test
 * runner detects a store that hangs.
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
