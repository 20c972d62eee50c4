import type { Call, LevelAnswer, LevelAsk } from '../../../backend.js';
import type { BucketShards } from './bucket-shards.js';
import { readLocation } from '../bucket/grant-location.js';
import { ratesOf, revocationOfGrant } from '../bucket/revocation.js';
import { tuningOf } from '../bucket/tuning.js';

interface Granted {
  readonly bucket: BucketShards;
  readonly call: Call;
  readonly level: LevelAsk;
  readonly leaseId: string | null;
}

/**
 * For a grant that could not be undone: tries in the background, on each shard that it was taken from. False: no holder
 * would tell whether it was undone already, so that it must not be tried.
 */
export function revokeGrant({ bucket, call, level, leaseId }: Granted, answer: LevelAnswer): boolean {
  if (level.holder === null || leaseId === null) return false;
  const whole = ratesOf(answer);
  const places = readLocation(answer.place);
  for (const [at, { shard, taken }] of places.entries()) {
    const ask = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts: at === 0 } as const;
    const part = whole.map(({ name }) => {
      const milli = taken.find((amount) => amount.name === name)?.milli;
      return { name, milli: -Number(milli ?? 0) };
    });
    bucket.revoke(shard, revocationOfGrant(ask, places.length === 1 ? whole : part), tuningOf(call));
  }
  return true;
}
