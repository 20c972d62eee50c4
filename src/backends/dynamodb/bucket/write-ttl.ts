import type { LevelRef } from '../../../backend.js';
import { compareVersions } from '../../../core/config/config.js';
import type { EpochMs } from '../../../core/units.js';
import { accountOf, type ShardImage } from '../table/items.js';
import { expiresTooEarly, expirySec, needsTtlRefresh, withinTtl } from './bucket-ttl.js';
import { applyShardWrite, type ShardWrite } from './shard-write.js';

interface TtlContext {
  readonly nowMs: EpochMs;
  readonly lifeFactor: number;
}

/**
 * Renews the `ttl` if needed. Adds conditions that refuse the write if other writers have taken so much since the image
 * was read that a limit would not be full again at the `ttl`.
 */
export function withTtl(image: ShardImage, write: ShardWrite, newest: LevelRef | null, at: TtlContext): ShardWrite {
  const { baseMs, ttlSec, version } = image;
  // Needs no condition: the write that adds a ttl also moves the base, and this write requires the base of the image.
  // So this write cannot land on a bucket that got a ttl since.
  if (ttlSec === null) return write;
  if (newest?.lasting === true && compareVersions(newest.version, version) >= 0) return { ...write, ttlSec: null };
  const renewedSec = renewedTtl(image, write, ttlSec, at);
  const limits = write.limits.map((limit) => {
    const rate = accountOf(image, limit.name)?.rate;
    const isSpent = limit.write.write === 'add' && limit.write.deltaMilli < 0;
    if (rate === undefined || !isSpent) return limit;
    return { ...limit, write: withinTtl(limit.write, rate, baseMs, renewedSec ?? ttlSec) };
  });
  return { ...write, limits, ttlSec: renewedSec };
}

/** undefined: the stored ttl is long enough. */
function renewedTtl(
  image: ShardImage,
  write: ShardWrite,
  ttlSec: number,
  { nowMs, lifeFactor }: TtlContext,
): number | undefined {
  const after = applyShardWrite(image, write, '');
  if (!needsTtlRefresh(image, nowMs, lifeFactor) && !expiresTooEarly(after)) return undefined;
  return Math.max(ttlSec, expirySec(after, nowMs, lifeFactor));
}
