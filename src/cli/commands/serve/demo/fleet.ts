import { Limit } from '../../../../core/limit.js';
import type { Decision } from '../../../../limiter/acquire/decision.js';
import type { RateLimiter } from '../../../../limiter/rate-limiter.js';

/** One simulated client of the demo. */
interface Client {
  readonly entityId: string;
  readonly resource: string;
  /** The mean time between two calls. */
  readonly everyMs: number;
  /** What a call asks for, and the range of what it really costs. */
  readonly tokens: number;
  readonly holdMs: number;
}

/**
 * Three users of one project, each with another kind of denial: `web` holds its slots for long, `mobile` asks about as
 * often as its limit allows, and `batch` asks five times as often.
 */
export const CLIENTS: readonly Client[] = [
  { entityId: 'acme/web', resource: 'gpt-4', everyMs: 700, tokens: 400, holdMs: 1_600 },
  { entityId: 'acme/mobile', resource: 'gpt-4', everyMs: 480, tokens: 250, holdMs: 400 },
  { entityId: 'acme/batch', resource: 'gpt-4', everyMs: 100, tokens: 700, holdMs: 150 },
];

const PROJECT = 'acme';

/**
 * Writes the entities and limits of the demo. Repeating it changes nothing. `isOwn`: the store belongs to the demo. Any other
 * keeps the limits that it has.
 */
export async function prepareDemo(limiter: RateLimiter, isOwn: boolean): Promise<void> {
  await createIfMissing(limiter, { id: PROJECT, name: 'Acme, the project that pays' });
  for (const { entityId } of CLIENTS) {
    await createIfMissing(limiter, { id: entityId, parentId: PROJECT, cascade: true });
  }
  const ofClient = [
    Limit.perMinute('rpm', 120, { burst: 30 }),
    Limit.perMinute('tpm', 90_000, { burst: 30_000 }),
    Limit.concurrent('slots', 3),
  ];
  const ofProject = [Limit.perMinute('rpm', 330, { burst: 60 }), Limit.perMinute('tpm', 160_000, { burst: 60_000 })];
  const { config } = limiter;
  if (isOwn || (await config.get({ resource: 'gpt-4' })) === null)
    await config.setResource('gpt-4', { limits: ofClient });
  const project = { entityId: PROJECT, resource: 'gpt-4' };
  if (isOwn || (await config.get(project)) === null) await config.setEntity(PROJECT, 'gpt-4', { limits: ofProject });
}

async function createIfMissing(limiter: RateLimiter, entity: Parameters<RateLimiter['entities']['create']>[0]) {
  if ((await limiter.entities.get(entity.id)) === null) await limiter.entities.create(entity);
}

export interface Fleet {
  /** Ends the calls and gives back what they hold. */
  stop(): Promise<void>;
}

/** Starts the simulated clients. Each call acquires, holds its slot for a while, and settles what it really cost. */
export function startFleet(
  limiter: RateLimiter,
  onDecision: (client: Client, decision: Decision) => void,
  random: () => number = Math.random,
): Fleet {
  /** Ends the waits of the calls that hold a slot. */
  const holding = new Set<() => void>();
  const calls = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const later = (ms: number, work: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, ms);
    timers.add(timer);
  };
  const track = (call: Promise<void>): void => {
    // A call that fails because the demo ends is no news.
    const ended = call.catch(() => {}).finally(() => calls.delete(ended));
    calls.add(ended);
  };
  const oneCall = async (client: Client): Promise<void> => {
    const { entityId, resource, tokens, holdMs } = client;
    const decision = await limiter.tryAcquire({ entityId, resource, consume: { rpm: 1, tpm: tokens, slots: 1 } });
    onDecision(client, decision);
    if (!decision.granted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        holding.delete(end);
        resolve();
      };
      holding.add(end);
      later(holdMs * (0.5 + random()), end);
    });
    await decision.lease.commit({ tpm: Math.round(tokens * (0.4 + random() * 1.1)) });
  };
  const schedule = (client: Client): void => {
    // Exponential gaps make the arrivals of independent callers.
    later(-Math.log(1 - random()) * client.everyMs, () => {
      track(oneCall(client));
      schedule(client);
    });
  };
  for (const client of CLIENTS) schedule(client);
  return {
    async stop() {
      for (const timer of timers) clearTimeout(timer);
      for (const end of holding) end();
      await Promise.all(calls);
    },
  };
}
