import { USAGE_WINDOWS, windowStart } from '../../../src/core/usage/usage.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';

/** By entity, resource and window: the usage of each limit, and `acquires`. Zeros are left out. */
export type Totals = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The usage of a test, counted independently of the store. */
export class UsageLedger {
  readonly #sums = new Map<string, Map<string, number>>();

  note(entityId: string, resource: string, atMs: number, amounts: Readonly<Record<string, number>>): void {
    for (const window of USAGE_WINDOWS) {
      const key = keyOf(entityId, resource, window, windowStart(window, atMs));
      const sum = this.#sums.get(key) ?? new Map<string, number>();
      for (const [name, amount] of Object.entries(amounts)) sum.set(name, (sum.get(name) ?? 0) + amount);
      this.#sums.set(key, sum);
    }
  }

  totals(): Totals {
    return totalsOf([...this.#sums].map(([key, sum]) => [key, Object.fromEntries(sum)]));
  }
}

/** The same totals from the usage records. */
export async function readTotals(limiter: RateLimiter, resources: readonly string[]): Promise<Totals> {
  const rows: [string, Record<string, number>][] = [];
  for (const resource of resources) {
    for (const window of USAGE_WINDOWS) {
      for await (const usage of limiter.usage.query({ resource, window })) {
        const { entityId, windowStart: start, tokens, acquires } = usage;
        rows.push([keyOf(entityId, resource, window, start.getTime()), { ...tokens, acquires }]);
      }
    }
  }
  return totalsOf(rows);
}

function keyOf(entityId: string, resource: string, window: string, startMs: number): string {
  return `${entityId} ${resource} ${window} ${new Date(startMs).toISOString()}`;
}

function totalsOf(rows: readonly (readonly [string, Readonly<Record<string, number>>])[]): Totals {
  const named = rows.map(([key, sums]) => {
    const used = Object.entries(sums).filter(([, amount]) => amount !== 0);
    return [key, Object.fromEntries(used)] as const;
  });
  return Object.fromEntries(named.filter(([, sums]) => Object.keys(sums).length > 0));
}

export const RESOURCES = ['gpt-4', 'embed'] as const;
const ENTITIES = ['user-1', 'user-2', 'user-3'] as const;
const CALLS_AT_ONCE = 20;

/**
 * Random acquires, adjusts, rollbacks and resets of several processes, all recorded in the ledger. The clock does not
 * advance while calls run, so that the window of each call is known. It advances by up to 20 minutes after each round.
 */
export async function makeTraffic(
  limiters: readonly RateLimiter[],
  clock: FakeClock,
  random: Random,
  calls: number,
  ledger: UsageLedger,
): Promise<void> {
  const open: Lease[] = [];
  const pickLease = (): Lease | undefined => open.splice(random.whole(0, open.length - 1), 1)[0];
  const acquire = async (): Promise<void> => {
    const request = { entityId: random.pick(ENTITIES), resource: random.pick(RESOURCES) };
    const consume = { rpm: 1, tpm: random.whole(0, 500) };
    const decision = await random.pick(limiters).tryAcquire({ ...request, consume });
    if (!decision.granted) return;
    ledger.note(request.entityId, request.resource, clock.now(), { ...consume, acquires: 1 });
    open.push(decision.lease);
  };
  const adjust = async (lease: Lease): Promise<void> => {
    const tpm = random.whole(-(lease.consumed['tpm'] ?? 0), 300);
    await lease.adjust({ tpm });
    ledger.note(lease.entityId, lease.resource, clock.now(), { tpm });
    open.push(lease);
  };
  const rollback = async (lease: Lease): Promise<void> => {
    const { consumed } = lease;
    await lease.rollback();
    const given = Object.entries(consumed).map(([name, amount]) => [name, -amount] as const);
    ledger.note(lease.entityId, lease.resource, clock.now(), Object.fromEntries(given));
  };
  for (let made = 0; made < calls;) {
    const round: Promise<unknown>[] = [];
    for (const most = Math.min(CALLS_AT_ONCE, calls - made); round.length < most;) {
      const dice = random.whole(1, 100);
      const lease = dice > 60 && dice <= 98 ? pickLease() : undefined;
      if (lease !== undefined) round.push(dice <= 80 ? adjust(lease) : rollback(lease));
      else if (dice <= 98) round.push(acquire());
      else
        round.push(limiters[0]!.buckets.reset({ entityId: random.pick(ENTITIES), resource: random.pick(RESOURCES) }));
    }
    await Promise.all(round);
    made += round.length;
    await clock.advance(random.whole(0, 1_200_000));
  }
}
