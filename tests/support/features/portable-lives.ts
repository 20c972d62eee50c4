import { expect } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import type { AcquireRequest } from '../../../src/limiter/acquire/request.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import { perform, PortableModel, type Step } from './portable-model.js';

export const LIMITS = [Limit.perDay('rpd', 1_000), Limit.perDay('tpd', 1_000_000), Limit.concurrent('slots', 100)];
export const USER = { entityId: 'user-1', resource: 'gpt-4' };
export const TAKEN = { rpd: 1, tpd: 500, slots: 2 };
const STEPS = 5;

function drawStep(random: Random, at: number): Step {
  switch (random.whole(0, 5)) {
    case 0:
      return { kind: 'settle', tpd: random.whole(0, 900) };
    case 1:
      return { kind: 'adjust', tpd: random.whole(-300, 300), id: `adjust-${at}` };
    case 2:
      return { kind: 'release' };
    case 3:
      return { kind: 'extend' };
    case 4:
      return at < STEPS - 1 ? { kind: 'settle', tpd: 100 } : { kind: 'commit', tpd: random.whole(0, 900) };
    default:
      return at < STEPS - 1 ? { kind: 'extend' } : { kind: 'rollback' };
  }
}

/** The steps of one lease, of which the last may end it. */
export function drawSteps(random: Random): readonly Step[] {
  return Array.from({ length: STEPS }, (_, at) => drawStep(random, at));
}

/**
 * One lease, whose steps are made by the processes in turn. A step whose outcome is not known is repeated by the next one.
 * `ends`: a lease that is still open after its steps is committed.
 */
export async function live(
  processes: readonly RateLimiter[],
  random: Random,
  { ends = false }: { readonly ends?: boolean } = {},
): Promise<PortableModel> {
  const model = new PortableModel(TAKEN);
  const request = { ...USER, consume: TAKEN, portable: true, leaseTtlMs: 3_600_000 };
  const token = await (await acquired(processes[0]!, request)).token();
  let turn = 0;
  const make = async (step: Step): Promise<void> => {
    for (let outcome = 'killed'; outcome === 'killed';) {
      const limiter = processes[turn++ % processes.length]!;
      outcome = await perform(await limiter.leases.resume(token), step);
      if (outcome !== 'killed') expect([step, outcome]).toEqual([step, model.apply(step)]);
    }
  };
  for (const step of drawSteps(random)) await make(step);
  if (ends && model.state === 'open') await make({ kind: 'commit', tpd: null });
  return model;
}

/** Splits and merges without a break may win every race of an acquire, which is then denied as contended. */
async function acquired(limiter: RateLimiter, request: AcquireRequest): Promise<Lease> {
  for (let tries = 0; tries < 100; tries++) {
    const decision = await limiter.tryAcquire(request);
    if (decision.granted) return decision.lease;
    expect(decision.reason).toBe('contended');
  }
  throw new Error('Contended 100 times');
}

/** What all leases have taken together. */
export function sumOfTaken(models: readonly PortableModel[]): { rpd: number; tpd: number; slots: number } {
  const sums = { rpd: 0, tpd: 0, slots: 0 };
  for (const { taken } of models) {
    sums.rpd += taken.rpd;
    sums.tpd += taken.tpd;
    sums.slots += taken.slots;
  }
  return sums;
}

/** A grant whose answer is lost for good is revoked, and the caller gets no lease: not the subject of these tests. */
export function isOfLease({ body }: { readonly body: unknown }): boolean {
  return !/"ac"/.test(JSON.stringify(body));
}
