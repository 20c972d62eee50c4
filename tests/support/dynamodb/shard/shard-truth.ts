import { writeHolds } from '../../../../src/core/bucket/bucket.js';
import { compareVersions } from '../../../../src/core/config/config.js';
import type { ShardWrite } from '../../../../src/backends/dynamodb/bucket/shard-write.js';
import type { Account, ShardImage } from '../../../../src/backends/dynamodb/table/items.js';

/** Whether a store with `truth` accepts a write that was planned on the image `seen`. */
export function shardWriteHolds(seen: ShardImage, write: ShardWrite, truth: ShardImage): boolean {
  if (seen.baseMs !== truth.baseMs) return false;
  if (typeof write.ttlSec === 'number' && (truth.ttlSec === null || truth.ttlSec > write.ttlSec)) return false;
  if (write.adopts !== null && compareVersions(seen.version, truth.version) !== 0) return false;
  const limitsHold = write.limits.every(({ name, write: change }) => {
    const account = accountIn(truth, name);
    return account === undefined ? isFree(change) : writeHolds(change, account.tokensMilli);
  });
  return limitsHold && write.holders.every((holder) => holderHolds(holder, truth));
}

function isFree(write: ShardWrite['limits'][number]['write']): boolean {
  return write.write === 'add' && write.atLeastMilli === null && write.atMostMilli === null;
}

function holderHolds(holder: ShardWrite['holders'][number], { holders }: ShardImage): boolean {
  const stored = holders.get(holder.leaseId);
  switch (holder.kind) {
    case 'add':
    case 'absent':
      return stored === undefined;
    case 'replace':
    case 'remove':
      return stored?.text === holder.seen;
  }
}

export function accountIn({ limits }: ShardImage, name: string): Account | undefined {
  return limits.find(({ limit }) => limit.name === name);
}
