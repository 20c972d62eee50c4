import { takeIfRoom } from '../../core/bucket/bucket.js';
import type { Amount } from '../../core/bucket/decide.js';
import { compareVersions, type ConfigVersion } from '../../core/config/config.js';
import { add, sub } from '../../core/int.js';
import { refills } from '../../core/limit-kind.js';
import { isRunning } from '../../core/pause.js';
import type { EpochMs, Millitokens } from '../../core/units.js';
import type { Account, Bucket } from './bucket.js';
import { isInHour } from './usage.js';

/** The balances before the take, by the position of the ask. One array for all calls, because no call is interrupted. */
const tokensBefore: Millitokens[] = [];

/**
 * What `consume` does where it has nothing to decide but "is there room": takes from the rates of a bucket in memory and
 * returns true, or changes nothing and returns false. False is always safe, because the caller then asks with `consume`.
 * It is false where `consume` would do more than this function does:
 * - the bucket was evicted or replaced, or its namespace is not active: `consume` creates a bucket, or throws;
 * - the config is newer or older than the rules of the bucket: `consume` settles, or asks the client to read its config
 *   again;
 * - the bucket is paused: `consume` describes the denial;
 * - the hour of the bucket's usage is over: `consume` folds the usage first;
 * - a limit is missing, concurrent (it needs a holder) or unlimited, or has no room: `consume` describes the denial.
 */
export function takeResident(bucket: Bucket, version: ConfigVersion, asks: readonly Amount[], nowMs: EpochMs): boolean {
  if (bucket.home?.isOpen !== true || !isInHour(bucket, nowMs)) return false;
  if (bucket.pause !== null && isRunning(bucket.pause, nowMs)) return false;
  if (bucket.version !== version && compareVersions(bucket.version, version) !== 0) return false;
  for (let at = 0; at < asks.length; at++) {
    const { name, milli } = asks[at] as Amount;
    const account = rateOf(bucket, name);
    if (account === undefined) return undo(bucket, asks, at);
    const left = takeIfRoom(account.limit, account.tokensMilli, bucket.baseMs, nowMs, milli);
    if (left === null) return undo(bucket, asks, at);
    if (at + 1 < asks.length) tokensBefore[at] = account.tokensMilli;
    account.tokensMilli = left;
    account.consumedMilli = add(account.consumedMilli, milli);
  }
  bucket.acquires += 1;
  return true;
}

/** Gives back what the first asks took, because the ask after them cannot be granted here. */
function undo(bucket: Bucket, asks: readonly Amount[], count: number): false {
  for (let at = 0; at < count; at++) {
    const { name, milli } = asks[at] as Amount;
    const account = rateOf(bucket, name) as Account;
    account.tokensMilli = tokensBefore[at] as Millitokens;
    account.consumedMilli = sub(account.consumedMilli, milli);
  }
  return false;
}

function rateOf({ limits }: Bucket, name: string): Account | undefined {
  for (const account of limits) if (account.limit.name === name && refills(account.limit.kind)) return account;
  return undefined;
}
