import { isRunning, laterPause, type Pause } from '../../../core/pause.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';

/** The pause with the latest end of any shard; null: none has one. */
export function latestPause(shards: readonly Pick<ShardImage, 'pause'>[]): Pause | null {
  let latest: Pause | null = null;
  for (const { pause } of shards) if (pause !== undefined) latest = laterPause(latest, pause);
  return latest;
}

/** The field of an answer about these shards: left out unless a pause runs. */
export function runningPause(shards: readonly Pick<ShardImage, 'pause'>[], nowMs: EpochMs): { readonly pause?: Pause } {
  const pause = latestPause(shards);
  return isRunning(pause, nowMs) ? { pause } : {};
}
