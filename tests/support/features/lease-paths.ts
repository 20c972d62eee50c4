import { expect } from 'vitest';
import { ENGINE } from '../dynamodb/world.js';
import { ask, BUCKET, limitsOf, pass, SLOTS, type StoreName, take } from './arenas.js';
import { LEASE_FEATURES, type LeaseFeature, type LeaseScene } from './lease-features.js';
import { hasPath, type Path } from './matrix.js';
import { isStored, rebase } from './write-paths.js';

const STORES: readonly StoreName[] = ENGINE.missing ? ['memory', 'file'] : ['memory', 'file', 'dynamodb'];
const HOUR_MS = 3_600_000;

/** What happens to the bucket of an open lease. */
export interface LeasePath {
  readonly name: string;
  readonly path: Path;
  /** Default: `keep`. */
  readonly onExpiry?: 'refund';
  readonly run: (scene: LeaseScene) => Promise<void>;
}

/** The bucket has what the model says. */
export async function expectBalance({ limiter, account, slots }: LeaseScene): Promise<void> {
  expect(await limiter.available(BUCKET)).toMatchObject({ rpm: account.tokens, slots });
}

/**
 * Gives back what the lease still has. The holder of a portable lease says whether another process has done so: without
 * it, nothing is given back.
 */
export async function endLease(scene: LeaseScene): Promise<void> {
  await scene.lease.rollback();
  if (scene.holds || !scene.isPortable) {
    scene.account.spend(-(scene.taken ?? 0));
    scene.taken = 0;
  }
  scene.slots += scene.holds ? 1 : 0;
  scene.holds = false;
}

/** The lease has another total of the rate, unless the rate was a short shadow. */
async function settle(scene: LeaseScene, total: number): Promise<void> {
  await scene.lease.settle({ rpm: total });
  if (scene.taken === null) return;
  scene.account.spend(total - scene.taken);
  scene.taken = total;
}

function loseHolder(scene: LeaseScene): void {
  Object.assign(scene, { slots: SLOTS, holds: false });
}

export const LEASE_PATHS: readonly LeasePath[] = [
  {
    name: 'take of another lease',
    path: 'take',
    run: async (scene) => {
      await pass(scene, 9);
      await take(scene, 7);
    },
  },
  {
    name: 'take from a bucket that has become full',
    path: 'full',
    run: async (scene) => {
      await scene.lease.extend(HOUR_MS);
      await pass(scene, 600);
      await take(scene, 30);
    },
  },
  {
    name: 'settle of the parameters',
    path: 'settle',
    run: async (scene) => {
      await pass(scene, 1);
      await scene.limiter.config.setSystem({ limits: limitsOf('rpm:60/min:40', scene.options) });
      scene.account.change(40, 1);
      await take(scene, 1);
    },
  },
  { name: 'settle to less', path: 'refund', run: async (scene) => settle(scene, 5) },
  { name: 'settle to more', path: 'refund', run: async (scene) => settle(scene, 90) },
  { name: 'rollback', path: 'refund', run: endLease },
  {
    name: 'extend',
    path: 'extend',
    run: async (scene) => {
      await scene.lease.extend(60_000);
      await pass(scene, 20);
      await scene.limiter.acquire(ask({ slots: SLOTS - 1 }));
      scene.slots -= SLOTS - 1;
    },
  },
  {
    name: 'reclaim that refunds',
    path: 'reclaim',
    onExpiry: 'refund',
    run: async (scene) => {
      await pass(scene, 11);
      await (await scene.limiter.acquire(ask({ slots: SLOTS }))).rollback();
      scene.account.spend(-(scene.taken ?? 0));
      loseHolder(scene);
      scene.taken = 0;
    },
  },
  {
    name: 'reclaim that keeps',
    path: 'reclaim',
    run: async (scene) => {
      await pass(scene, 11);
      await (await scene.limiter.acquire(ask({ slots: SLOTS }))).rollback();
      loseHolder(scene);
    },
  },
  {
    name: 'reset',
    path: 'reset',
    run: async (scene) => {
      await scene.limiter.buckets.reset(BUCKET);
      scene.account.fill();
      loseHolder(scene);
      await take(scene, 30);
    },
  },
  {
    name: 'rebase of a large balance',
    path: 'rebase',
    run: async (scene) => {
      await scene.lease.extend(HOUR_MS);
      await rebase(scene);
    },
  },
  {
    name: 'ttl of a bucket that is deleted and created again',
    path: 'ttl',
    run: async (scene) => {
      await scene.expire();
      expect(await isStored(scene)).toBe(false);
      scene.account.fill();
      loseHolder(scene);
      await take(scene, 30);
    },
  },
  {
    name: 'eviction that leaves the bucket of an open lease',
    path: 'eviction',
    run: async (scene) => {
      await scene.lease.extend(HOUR_MS);
      await pass(scene, 600);
      await scene.evict();
      expect(await isStored(scene)).toBe(true);
      await take(scene, 30);
    },
  },
  { name: 'split', path: 'split', run: async (scene) => scene.split() },
  {
    name: 'merge',
    path: 'merge',
    run: async (scene) => {
      await scene.lease.extend(48 * HOUR_MS);
      await scene.split();
      await scene.merge();
      scene.account.fill();
      await take(scene, 30);
    },
  },
];

type LeaseCell = readonly [feature: string, path: string, store: StoreName, LeaseFeature, LeasePath];

/** Each feature with each path on each store that has it. */
export const LEASE_CELLS: readonly LeaseCell[] = LEASE_FEATURES.flatMap((feature) =>
  LEASE_PATHS.flatMap((path) =>
    STORES.filter((store) => hasPath(store, path.path)).map(
      (store) => [feature.name, path.name, store, feature, path] as const,
    ),
  ),
);
