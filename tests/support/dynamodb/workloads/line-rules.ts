import type { Call, LevelRef } from '../../../../src/backend.js';
import type { BucketCache } from '../../../../src/backends/dynamodb/acquire/bucket-shards.js';
import { adjust } from '../../../../src/backends/dynamodb/acquire/change-level.js';
import { consume } from '../../../../src/backends/dynamodb/acquire/consume.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { pauseShards } from '../../../../src/backends/dynamodb/stores/buckets/pause-shards.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import type { Holder } from '../../../../src/core/bucket/decide.js';
import { changesBy } from '../../../../src/core/bucket/holder-rules.js';
import type { Limit } from '../../../../src/core/limit.js';
import { shareOfCapacity } from '../../../../src/core/limit-options.js';
import type { Part } from '../../../oracle/model.js';
import type { Rules } from '../../../oracle/rules.js';
import { limitOf, nameOf } from './oracle-limits.js';
import { KEY } from '../shard/shard-images.js';
import { TUNING } from '../shard/shard-lines.js';

const TIMEOUT_MS = 20_000;
/** No lease expires during a scenario. */
const LEASE_MS = 1e11;

/** A table as processes use it that share only that table. */
export interface SharedTable {
  readonly ns: string;
  /** The buckets of one more process, with its own lines and caches. */
  open(): BucketCache;
  read(): Promise<ShardImage>;
}

interface Process {
  readonly buckets: BucketCache;
  limits: readonly Limit[];
  sequence: number;
}

/** The real code of acquires, corrections, changes of limits and pauses, as the rules of the oracle. */
export function lineRules(table: SharedTable): Rules {
  return (_, initial) => {
    const processes = new Map<number, Process>();
    let sequence = 1;
    let limits = initial.limits.map(({ rate }, limit) => limitOf(limit, rate));
    const processOf = (client: number): Process => {
      const process = processes.get(client) ?? { buckets: table.open(), limits, sequence };
      processes.set(client, process);
      return process;
    };

    return {
      async move(client, { asks, debits, refunds, leases }, nowMs) {
        const process = processOf(client);
        const { buckets } = process;
        // A client does not ask for more than the capacity of its cached config. It reads the config again first.
        const isTooLarge = ({ limit, milli, reservePermille = 0 }: Part): boolean => {
          const { capacityMilli = 0, kind = 'rate' } = process.limits[limit] ?? {};
          return milli + shareOfCapacity({ kind, capacityMilli }, reservePermille / 1_000) > capacityMilli;
        };
        if (asks.flat().some(isTooLarge)) Object.assign(process, { limits, sequence });
        const call = callAt(table.ns, nowMs);
        const ask = async (parts: readonly Part[], index: number) => {
          const leaseId = leases?.[index] ?? null;
          const holder = leaseId === null ? null : holderOf(process, parts, nowMs);
          const level = { ...refOf(process), asks: parts.map(askOf), holder };
          return consume(buckets, call, { leaseId: holder === null ? null : leaseId, levels: [level] });
        };
        const change = async ({ limit, milli, lease }: Part, sign: number) => {
          const deltas = lease === undefined ? [{ name: nameOf(limit), milli: sign * milli }] : [];
          const holder = lease === undefined ? 'none' : 'release';
          const level = { ...refOf(process), amounts: changesBy(deltas), holder } as const;
          const [result] = await adjust(buckets, call, { leaseId: lease ?? '', levels: [level] });
          if (result?.kind !== 'done') throw new Error('A correction failed');
        };
        const [granted] = await Promise.all([
          Promise.all(asks.map(ask)),
          Promise.all(debits.map(async (part) => change(part, 1))),
          Promise.all(refunds.map(async (part) => change(part, -1))),
        ]);
        // A client whose config is old reads it again.
        const isOld = granted.some(
          (outcome) => 'levels' in outcome && outcome.levels.some(({ configIsOlder }) => configIsOlder),
        );
        if (isOld) Object.assign(process, { limits, sequence });
        return granted.map(({ kind }) => kind === 'granted');
      },
      async change(client, limit, rate, nowMs) {
        const process = processOf(client);
        sequence += 1;
        limits = limits.map((known, place) => (place === limit ? limitOf(limit, rate) : known));
        Object.assign(process, { limits, sequence });
        const level = { ...refOf(process), asks: [], holder: null };
        await consume(process.buckets, callAt(table.ns, nowMs), { leaseId: null, levels: [level] });
        return (await table.read()).baseMs;
      },
      async pause(endMs, nowMs) {
        const { executor } = table.open().of(table.ns, KEY.entityId, KEY.resource);
        const bucket = { ...KEY, limits, version: { sequence, openedAtMs: 0 } };
        const pause = endMs === null ? null : { endMs, reason: 'vendor' };
        const deadline = deadlineIn(TIMEOUT_MS);
        await pauseShards({ executor, bucket, nowMs, deadline, lifeFactor: TUNING.bucketLifeFactor }, pause);
      },
    };
  };
}

function callAt(namespaceId: string, nowMs: number): Call {
  return { namespaceId, nowMs, timeoutMs: TIMEOUT_MS, tuning: TUNING };
}

function refOf({ limits, sequence }: Process): LevelRef {
  return { ...KEY, limits, version: { sequence, openedAtMs: 0 } };
}

/** The slots that an ask holds until its lease ends. null: it asks for none. */
function holderOf({ limits }: Process, parts: readonly Part[], nowMs: number): Holder | null {
  const slots = parts
    .filter(({ limit, milli }) => limits[limit]?.kind === 'concurrent' && milli > 0)
    .map(({ limit, milli }) => ({ name: nameOf(limit), milli }));
  if (slots.length === 0) return null;
  return { acquiredAtMs: nowMs, expiresAtMs: nowMs + LEASE_MS, slots, rates: null, caller: null };
}

function askOf({ limit, milli, reservePermille = 0, shadow }: Part) {
  const reserve = reservePermille === 0 ? {} : { reserve: reservePermille / 1_000 };
  return { name: nameOf(limit), milli, ...reserve, ...(shadow === true ? { shadow } : {}) };
}
