import type { ManifestData, RateLimiter } from 'headgate';

export async function applyFromCode(limiter: RateLimiter, manifest: ManifestData): Promise<readonly string[]> {
  // #region manifest
  const plan = await limiter.manifest.plan(manifest); // { changes, drift, unchanged }; writes nothing
  await limiter.manifest.apply(manifest, {
    confirm: ({ changes }) => {
      if (changes.some(({ action }) => action === 'delete')) throw new Error('This would delete something');
    },
    onProgress: ({ change, done, total }) => console.log(`${done} of ${total}: ${change.action}`),
  });
  const all = await limiter.manifest.export();
  // #endregion manifest
  return [`${plan.changes.length} planned`, Object.keys(all.resources ?? {}).join()];
}
