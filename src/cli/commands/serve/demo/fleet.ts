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

/** Three users of one project. `batch` asks for more than its limit allows, so that its denials are seen. */
export const CLIENTS: readonly Client[] = [
  { entityId: 'acme/web', resource: 'gpt-4', everyMs: 220, tokens: 400, holdMs: 600 },
  { entityId: 'acme/mobile', resource: 'gpt-4', everyMs: 350, tokens: 250, holdMs: 400 },
  { entityId: 'acme/batch', resource: 'gpt-4', everyMs: 90, tokens: 900, holdMs: 900 },
];

const PROJECT = 'acme';

/** Writes the entities and limits of the demo. Repeating it changes nothing. */
export async function prepareDemo(limiter: RateLimiter): Promise<void> {
  await createIfMissing(limiter, { id: PROJECT, name: 'Acme, the project that pays' });
  for (const { entityId } of CLIENTS) {
    await createIfMissing(limiter, { id: entityId, parentId: PROJECT, cascade: true });
  }
  await limiter.config.setResource('gpt-4', {
    limits: [Limit.perMinute('rpm', 300), Limit.perMinute('tpm', 90_000), Limit.concurrent('slots', 3)],
  });
  await limiter.config.setEntity(PROJECT, 'gpt-4', {
    limits: [Limit.perMinute('rpm', 600), Limit.perMinute('tpm', 150_000)],
  });
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
