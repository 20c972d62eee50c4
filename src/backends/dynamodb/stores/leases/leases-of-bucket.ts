import type { LeaseRecord } from '../../../../backend.js';
import type { Holder } from '../../../../core/bucket/decide.js';
import { joinHolders } from '../../../../core/bucket/portable-parts.js';
import { isClosed } from '../../../../core/bucket/portable.js';
import type { ShardImage } from '../../table/items.js';

export type BucketOfLease = Pick<LeaseRecord, 'entityId' | 'resource'>;

/** The leases of a bucket that have not ended, in the order of their ids. A lease on several shards is one lease. */
export function leasesOf({ entityId, resource }: BucketOfLease, shards: readonly ShardImage[]): readonly LeaseRecord[] {
  const parts = new Map<string, Holder[]>();
  for (const { holders } of shards) {
    for (const [id, holder] of holders) {
      if (isClosed(holder)) continue;
      parts.set(id, [...(parts.get(id) ?? []), holder]);
    }
  }
  return [...parts]
    .flatMap(([id, held]) => {
      const holder = joinHolders(held);
      return holder === undefined ? [] : [{ ...plainHolder(holder), id, entityId, resource }];
    })
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Without the stored text. */
export function plainHolder({ expiresAtMs, acquiredAtMs, slots, rates, caller, portable }: Holder): Holder {
  return { expiresAtMs, acquiredAtMs, slots, rates, caller, ...(portable === undefined ? {} : { portable }) };
}
