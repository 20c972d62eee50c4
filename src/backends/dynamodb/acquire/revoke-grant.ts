import type { Call, LevelAnswer, LevelAsk } from '../../../backend.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';
import { readLocation } from '../bucket/grant-location.js';
import { ratesOf, revocationOfGrant, untakenOf } from '../bucket/group/revocation.js';

interface Granted {
  readonly bucket: BucketShards;
  readonly call: Call;
  readonly level: LevelAsk;
  readonly leaseId: string | null;
}

/**
 * Retries in the background to undo a grant, on each shard that it was taken from. False: without a holder nothing
 * shows whether the grant is undone already, so it must not be retried.
 */
export function revokeGrant({ bucket, call, level, leaseId }: Granted, answer: LevelAnswer): boolean {
  if (level.holder === null || leaseId === null) return false;
  const whole = ratesOf(answer);
  const locations = readLocation(answer.place);
  for (const [at, { shard, taken }] of locations.entries()) {
    const ask = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts: at === 0 } as const;
    const part = whole.map(({ name }) => {
      const milli = taken.find((amount) => amount.name === name)?.milli;
      return { name, milli: -Number(milli ?? 0) };
    });
    bucket.revoke(
      shard,
      revocationOfGrant(ask, locations.length === 1 ? whole : part, untakenOf(answer)),
      tuningOf(call),
    );
  }
  return true;
}
