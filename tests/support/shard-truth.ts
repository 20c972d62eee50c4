import { writeHolds } from '../../src/core/bucket/bucket.js';
import { compareVersions } from '../../src/core/config/config.js';
import type { ShardWrite } from '../../src/backends/dynamodb/bucket/shard-write.js';
import type { Account, ShardImage } from '../../src/backends/dynamodb/table/items.js';

/** Whether a move that was planned on one image is written where another is the truth. */
export function moveHolds(seen: ShardImage, move: ShardWrite, truth: ShardImage): boolean {
  if (seen.baseMs !== truth.baseMs) return false;
  if (typeof move.ttlSec === 'number' && (truth.ttlSec === null || truth.ttlSec > move.ttlSec)) return false;
  if (move.adopts !== null && compareVersions(seen.version, truth.version) !== 0) return false;
  const limitsHold = move.limits.every(({ name, write }) => {
    const account = accountIn(truth, name);
    return account === undefined ? isFree(write) : writeHolds(write, account.tokensMilli);
  });
  return limitsHold && move.holders.every((holder) => holderHolds(holder, truth));
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
