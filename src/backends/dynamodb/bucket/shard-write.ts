import { applyWrite, type LimitWrite } from '../../../core/bucket/bucket.js';
import type { ConfigVersion } from '../../../core/config/config.js';
import type { Holder } from '../../../core/bucket/decide.js';
import { add, type Int } from '../../../core/int.js';
import { decodeHolder, encodeHolder, type ShardImage, type StoredHolder } from '../table/items.js';

/** What one write does to one shard: decided from an image, exact on whatever it finds, or refused. */
export interface ShardWrite {
  readonly limits: readonly LimitChange[];
  readonly acquires: number;
  readonly expired: number;
  readonly holders: readonly HolderChange[];
  /** The bucket has these rules already, but not their version. */
  readonly adopts: ConfigVersion | null;
  /** undefined: it stays. null: it goes, and the bucket is to last. */
  readonly ttlSec: number | null | undefined;
}

export interface LimitChange {
  readonly name: string;
  readonly write: LimitWrite;
  /** By how much net consumption grows: 0 for slots. */
  readonly consumedMilli: Int;
}

export type HolderChange =
  | { readonly kind: 'add'; readonly leaseId: string; readonly text: string }
  | { readonly kind: 'replace'; readonly leaseId: string; readonly seen: string; readonly text: string }
  | { readonly kind: 'remove'; readonly leaseId: string; readonly seen: string }
  /** Nothing is written, but an answer depends on its not being there. */
  | { readonly kind: 'absent'; readonly leaseId: string };

/** Leaves a balance as it is. */
export const STAYS: LimitWrite = { write: 'add', deltaMilli: 0, atLeastMilli: null, atMostMilli: null };

/** Whether there is anything to write, or only something to find out. */
export function changesNothing({ limits, acquires, expired, holders, adopts, ttlSec }: ShardWrite): boolean {
  return (
    acquires === 0 &&
    expired === 0 &&
    adopts === null &&
    ttlSec === undefined &&
    limits.every(
      ({ write, consumedMilli }) => write.write === 'add' && write.deltaMilli === 0 && consumedMilli === 0,
    ) &&
    holders.every(({ kind }) => kind === 'absent')
  );
}

export function addHolder(leaseId: string, holder: Holder): HolderChange {
  return { kind: 'add', leaseId, text: encodeHolder(holder) };
}

export function replaceHolder(leaseId: string, seen: StoredHolder, holder: Holder): HolderChange {
  return { kind: 'replace', leaseId, seen: seen.text, text: encodeHolder(holder) };
}

export function removeHolder(leaseId: string, seen: StoredHolder): HolderChange {
  return { kind: 'remove', leaseId, seen: seen.text };
}

/** Whether what goes with it counts once, however often it is sent: after the first time the holder is no longer as seen. */
export function countsOnce(move: HolderChange | undefined): boolean {
  return move?.kind === 'remove' || (move?.kind === 'replace' && move.text !== move.seen);
}

/** The image after the write: what DynamoDB does, for items that do not exist yet. */
export function applyShardWrite(image: ShardImage, move: ShardWrite, writeId: string): ShardImage {
  const holders = new Map(image.holders);
  for (const holder of move.holders) {
    if (holder.kind === 'remove') holders.delete(holder.leaseId);
    else if (holder.kind !== 'absent') holders.set(holder.leaseId, decodeHolder(holder.leaseId, holder.text));
  }
  return {
    ...image,
    writeId,
    version: move.adopts ?? image.version,
    ttlSec: move.ttlSec === undefined ? image.ttlSec : move.ttlSec,
    acquires: image.acquires + move.acquires,
    expired: image.expired + move.expired,
    holders,
    onSweepList: image.onSweepList || holders.size > 0,
    limits: image.limits.map((account) => {
      const moved = move.limits.find(({ name }) => name === account.limit.name);
      if (moved === undefined) return account;
      return {
        ...account,
        tokensMilli: applyWrite(moved.write, account.tokensMilli),
        consumedMilli: add(account.consumedMilli, moved.consumedMilli),
      };
    }),
  };
}
