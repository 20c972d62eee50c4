import { afterAll, expect, test } from 'vitest';
import { Arenas } from '../support/features/arenas.js';
import { setUpLease } from '../support/features/lease-features.js';
import { endLease, expectBalance, LEASE_CELLS } from '../support/features/lease-paths.js';

const arenas = new Arenas();
afterAll(async () => arenas[Symbol.asyncDispose]());

test.each(LEASE_CELLS)('%s is ended exactly after a %s on %s', async (_feature, _path, store, feature, path) => {
  const arena = await arenas.open(store, feature.options, { onExpiry: path.onExpiry ?? 'keep' });
  const scene = await setUpLease(arena, feature);
  await expectBalance(scene);
  await path.run(scene);
  await expectBalance(scene);
  await endLease(scene);
  await expectBalance(scene);
  expect(scene.lease.consumed['rpm'] ?? 0).toBe(scene.taken ?? 0);
});
