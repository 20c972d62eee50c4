import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import { Limit } from '../../../src/core/limit.js';
import { USAGE_WINDOWS, windowStart } from '../../../src/core/usage/usage.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';
import { reshard } from '../../support/dynamodb/shard/reshard.js';

export const ENTITIES = ['user-1', 'user-2', 'team'] as const;
export const RESOURCES = ['gpt-4', 'gpt-5'] as const;
const OWN_LIMITS = [Limit.parse('rpm:40/min'), Limit.parse('tpm:900/min')];

/** The usage of one entity and resource in one window, as the spending client counts it. */
export interface Spent {
  readonly tokens: Record<string, number>;
  acquires: number;
}

/** A ledger of grants and corrections, independent of how the store counts. */
export class SpendingLedger {
  readonly windows = new Map<string, Spent>();

  add(entityId: string, resource: string, atMs: number, tokens: Readonly<Record<string, number>>, acquires = 0): void {
    for (const window of USAGE_WINDOWS) {
      const key = `${entityId} ${resource} ${window} ${new Date(windowStart(window, atMs)).toISOString()}`;
      const spent = this.windows.get(key) ?? { tokens: {}, acquires: 0 };
      this.windows.set(key, spent);
      spent.acquires += acquires;
      for (const [name, count] of Object.entries(tokens)) spent.tokens[name] = (spent.tokens[name] ?? 0) + count;
    }
  }

  /** Leaves out windows and limits whose sum is 0. */
  used(): Map<string, Spent> {
    const used = new Map<string, Spent>();
    for (const [key, { tokens, acquires }] of this.windows) {
      const left = Object.fromEntries(Object.entries(tokens).filter(([, count]) => count !== 0));
      if (acquires !== 0 || Object.keys(left).length > 0) used.set(key, { tokens: left, acquires });
    }
    return used;
  }
}

interface Traffic {
  readonly random: Random;
  readonly clock: FakeClock;
  readonly limiters: readonly RateLimiter[];
  readonly table: Table;
  readonly ns: string;
  readonly ledger: SpendingLedger;
}

/** Random spending of `user-1`, which cascades to `team`, and of `user-2`, with splits and merges. */
export async function spendAtRandom(traffic: Traffic, steps: number): Promise<void> {
  const { random, clock, limiters } = traffic;
  const open: Lease[] = [];
  for (let step = 0; step < steps; step++) {
    const kind = random.whole(0, 19);
    if (kind < 9) await acquire(traffic, open);
    else if (kind < 14) await correct(traffic, open);
    else if (kind < 17) await clock.advance(random.pick([1, 400, 7 * 60_000, 50 * 60_000]));
    else if (kind < 18) await reshardAny(traffic, 'split');
    else if (kind < 19) await reshardAny(traffic, 'merge');
    else await random.pick(limiters).buckets.reset({ entityId: random.pick(ENTITIES), resource: 'gpt-4' });
  }
}

async function acquire({ random, clock, limiters, ledger }: Traffic, open: Lease[]): Promise<void> {
  const consume = { rpm: random.whole(0, 3), tpm: random.whole(0, 200) };
  const entityId = random.pick(['user-1', 'user-1', 'user-2']);
  const resource = random.pick(RESOURCES);
  const limits = random.whole(0, 4) === 0 ? { limits: OWN_LIMITS } : {};
  const asks = Array.from({ length: random.pick([1, 1, 1, 5]) }, async () =>
    random.pick(limiters).tryAcquire({ entityId, resource, consume, ...limits }),
  );
  for (const decision of await Promise.all(asks)) {
    if (!decision.granted) continue;
    ledger.add(entityId, resource, clock.now(), consume, 1);
    if (entityId === 'user-1') ledger.add('team', resource, clock.now(), consume, 1);
    open.push(decision.lease);
  }
}

async function correct({ random, clock, ledger }: Traffic, open: Lease[]): Promise<void> {
  const at = random.whole(0, Math.max(0, open.length - 1));
  const lease = open[at];
  if (lease === undefined) return;
  const before = { ...lease.consumed };
  const total = random.whole(0, 300);
  const verb = random.pick(['adjust', 'settle', 'commit', 'rollback'] as const);
  if (verb === 'adjust') await lease.adjust({ tpm: total - (before['tpm'] ?? 0) });
  else if (verb === 'rollback') await lease.rollback();
  else await lease[verb]({ tpm: total });
  const deltas =
    verb === 'rollback'
      ? Object.fromEntries(Object.entries(before).map(([name, count]) => [name, -count]))
      : { tpm: total - (before['tpm'] ?? 0) };
  for (const entityId of lease.entityId === 'user-1' ? ['user-1', 'team'] : [lease.entityId]) {
    ledger.add(entityId, lease.resource, clock.now(), deltas);
  }
  if (verb === 'rollback' || verb === 'commit') open.splice(at, 1);
}

/** Splits or merges a random bucket, if it allows that. */
async function reshardAny({ random, clock, table, ns }: Traffic, how: 'split' | 'merge'): Promise<void> {
  const bucket = { entityId: random.pick(ENTITIES), resource: random.pick(RESOURCES) };
  await reshard({ table, ns, nowMs: clock.now(), bucket }, how);
}
