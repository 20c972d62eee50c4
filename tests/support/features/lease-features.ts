import { expect } from 'vitest';
import type { AcquireRequest } from '../../../src/limiter/acquire/request.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import { type Arena, ask, BUCKET, SLOTS, take } from './arenas.js';
import type { Feature } from './matrix.js';

/** A lease that a feature has shaped, and what the model says that it has. */
export interface LeaseScene extends Arena {
  readonly lease: Lease;
  readonly isPortable: boolean;
  /** What the lease has taken of the rate; null: the rate was a shadow and short, so nothing is ever taken. */
  taken: number | null;
  /** The free slots of the bucket. */
  slots: number;
  /** Whether the lease still has its slot. */
  holds: boolean;
}

/** A feature that decides what the first lease of a bucket takes, with the expectation of that. */
export interface LeaseFeature {
  readonly name: string;
  readonly feature: Feature;
  readonly options: string;
  /** What other leases take before, so that the feature matters. */
  readonly before: number;
  /** The tokens that are asked for, with one slot. */
  readonly asked: number;
  /** What is taken of them; null: nothing, because the rate is a shadow. */
  readonly taken: number | null;
  readonly more?: Partial<AcquireRequest>;
  readonly bypass?: boolean;
  /** Checks that the feature still applies right after the lease. */
  readonly check?: (arena: Arena) => Promise<void>;
}

/** What is left is less than half of the capacity, so that a half of it has room for the whole lease. */
const SHAPED: readonly LeaseFeature[] = [
  {
    name: 'a lease that was cut by atMost',
    feature: 'atMost',
    options: '',
    before: 43,
    asked: 1_000,
    taken: 17,
    more: { atMost: 'rpm' },
  },
  {
    name: 'a lease of a class with a reserve',
    feature: 'priority',
    options: '!reserve.batch=0.3',
    before: 30,
    asked: 12,
    taken: 12,
    more: { priority: 'batch' },
    check: async ({ limiter }) => {
      expect((await limiter.tryAcquire(ask({ rpm: 1 }, { priority: 'batch' }))).granted).toBe(false);
    },
  },
  { name: 'a lease of a shadow that fits', feature: 'shadow', options: '!shadow', before: 30, asked: 20, taken: 20 },
  {
    name: 'a lease of a shadow that is short',
    feature: 'shadow',
    options: '!shadow',
    before: 43,
    asked: 30,
    taken: null,
  },
  {
    name: 'a lease of a bypass that fits',
    feature: 'bypass',
    options: '',
    before: 30,
    asked: 20,
    taken: 20,
    bypass: true,
  },
  {
    name: 'a lease of a bypass that is short',
    feature: 'bypass',
    options: '',
    before: 43,
    asked: 30,
    taken: null,
    bypass: true,
  },
  {
    name: 'a lease that made its limit near',
    feature: 'near',
    options: '!warnAt=0.6',
    before: 20,
    asked: 16,
    taken: 16,
    check: async ({ limiter }) => {
      expect((await limiter.status(BUCKET)).some(({ near }) => near === true)).toBe(true);
    },
  },
  {
    name: 'a lease after a charge',
    feature: 'charge',
    options: '',
    before: 20,
    asked: 10,
    taken: 10,
    check: async ({ limiter, account }) => {
      for (let sent = 0; sent < 2; sent++) await limiter.charge({ ...BUCKET, amounts: { rpm: 10 }, id: 'invoice' });
      account.spend(10);
    },
  },
];

/** Portable leases, whose operations another kind of account makes: where the feature decides what the lease takes. */
const PORTABLE: readonly LeaseFeature[] = SHAPED.filter(({ feature }) =>
  ['atMost', 'priority', 'shadow'].includes(feature),
).map((shaped) => ({
  ...shaped,
  name: shaped.name.replace('a lease', 'a portable lease'),
  more: { ...shaped.more, portable: true },
}));

export const LEASE_FEATURES: readonly LeaseFeature[] = [...SHAPED, ...PORTABLE];

/** Takes the lease of the feature, and sets up the model. */
export async function setUpLease(arena: Arena, feature: LeaseFeature): Promise<LeaseScene> {
  const { limiter, account } = arena;
  const { before, asked, taken, more, bypass = false } = feature;
  if (bypass) await limiter.entities.create({ id: BUCKET.entityId, bypass: true });
  await take(arena, before);
  const lease = await limiter.acquire(ask({ rpm: asked, slots: 1 }, { leaseTtlMs: 10_000, ...more }));
  expect(lease.consumed).toEqual(taken === null ? { slots: 1 } : { rpm: taken, slots: 1 });
  account.spend(taken ?? 0);
  await feature.check?.(arena);
  return { ...arena, lease, isPortable: more?.portable === true, taken, slots: SLOTS - 1, holds: true };
}
