import { Limit } from '../../../src/core/limit.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';

/** A project with three applications, limits on two levels, and one reserve. */
export async function prepareEntities(limiter: RateLimiter): Promise<void> {
  await limiter.entities.create({ id: 'acme', name: 'Acme, the project that pays', metadata: { plan: 'enterprise' } });
  for (const [id, name] of [
    ['acme/web', 'Web application'],
    ['acme/mobile', 'Mobile application'],
    ['acme/batch', 'Nightly batch'],
  ] as const) {
    await limiter.entities.create({ id, name, parentId: 'acme', cascade: true });
  }
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 60)], onUnavailable: 'block' });
  await limiter.config.setResource('gpt-4', {
    limits: [Limit.perMinute('rpm', 600), Limit.parse('tpm:90000/min!reserve.batch=0.3'), Limit.concurrent('slots', 3)],
  });
  await limiter.config.setEntity('acme', 'gpt-4', {
    limits: [Limit.perMinute('rpm', 3_000), Limit.perMinute('tpm', 400_000)],
  });
  await limiter.config.setEntity('acme/batch', 'gpt-4', {
    limits: [Limit.perMinute('rpm', 120), Limit.perMinute('tpm', 20_000), Limit.concurrent('slots', 2)],
  });
}

export interface Traffic {
  /** Ends the calls. Resolves when the last one is answered. */
  stop(): Promise<void>;
}

const CALLS = [
  { entityId: 'acme/web', consume: { rpm: 1, tpm: 300 }, everyMs: 60 },
  { entityId: 'acme/mobile', consume: { rpm: 1, tpm: 200 }, everyMs: 110 },
  { entityId: 'acme/batch', consume: { rpm: 1, tpm: 900, slots: 1 }, everyMs: 130 },
] as const;

/** Sends asks to a server over HTTP until it is stopped. Slots are kept until their leases expire. */
export function startTraffic(url: string): Traffic {
  const inFlight = new Set<Promise<unknown>>();
  const timers = CALLS.map(({ everyMs, ...ask }) =>
    setInterval(() => {
      const body = JSON.stringify({ ...ask, resource: 'gpt-4' });
      const call = fetch(`${url}/v1/acquire`, { method: 'POST', body })
        .then((response) => response.arrayBuffer())
        .catch(() => {})
        .finally(() => inFlight.delete(call));
      inFlight.add(call);
    }, everyMs),
  );
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(inFlight);
    },
  };
}
