import type { UsageRecord } from '../../../../backend.js';
import { type Int, sub } from '../../../../core/int.js';
import { parsePlainResource } from '../../../../core/identifiers.js';
import {
  addUsage,
  NO_USAGE,
  USAGE_WINDOWS,
  type UsageCounts,
  type UsageWindow,
  windowStart,
} from '../../../../core/usage/usage.js';
import type { CountedSpan } from '../../expressions/add-usage.js';
import { buildUsageKey } from '../../table/keys.js';
import { USAGE_ATTRIBUTE } from '../../table/records.js';
import type { BucketChange } from '../decode.js';

/** What changes add to one usage record. */
export interface UsageSum extends Pick<UsageRecord, 'entityId' | 'resource' | 'window' | 'startMs'> {
  readonly ns: string;
  /** The parts of one bucket shard are in order, each once. */
  readonly parts: readonly UsagePart[];
}

export interface UsagePart {
  /** The attribute of the record with the position up to which this bucket shard is counted. */
  readonly counted: string;
  readonly sequence: string;
  readonly counts: UsageCounts;
}

/**
 * The usage of a change. A removal has no usage: what the shard counted was counted before. A merge has none, because a
 * shard takes over what the other one counted; no other write reduces the shard count. Counters of another layout have
 * none: that layout has its own usage records, which are migrated.
 */
export function usageOf({ before, after }: Pick<BucketChange, 'before' | 'after'>): UsageCounts {
  if (after === null || after.foreign === true || (before !== null && after.shardCount < before.shardCount))
    return NO_USAGE;
  const from: UsageCounts = before ?? NO_USAGE;
  const consumedMilli = new Map<string, Int>();
  for (const [name, milli] of after.consumedMilli) {
    const used = sub(milli, from.consumedMilli.get(name) ?? 0);
    if (used !== 0) consumedMilli.set(name, used);
  }
  return { consumedMilli, acquires: after.acquires - from.acquires, expired: after.expired - from.expired };
}

interface GrowingSum extends UsageSum {
  readonly parts: UsagePart[];
  /** The last change of each bucket shard. */
  readonly latest: Map<string, string>;
}

/** Sums per usage record. A change that comes again, or after a later one of its shard, is a replay and is left out. */
export class UsageFold {
  readonly #windows: readonly UsageWindow[];
  readonly #sums = new Map<string, GrowingSum>();

  constructor(windows: readonly UsageWindow[]) {
    this.#windows = windows;
  }

  add(changes: Iterable<BucketChange>): this {
    for (const change of changes) {
      const counts = usageOf(change);
      if (counts.consumedMilli.size === 0 && counts.acquires === 0 && counts.expired === 0) continue;
      const counted = USAGE_ATTRIBUTE.counted(change.key);
      for (const window of this.#windows) {
        const { latest, parts } = this.#sumOf(change, window);
        if (change.sequence <= (latest.get(counted) ?? '')) continue;
        latest.set(counted, change.sequence);
        parts.push({ counted, sequence: change.sequence, counts });
      }
    }
    return this;
  }

  sums(): readonly UsageSum[] {
    return [...this.#sums.values()];
  }

  /** Drops a sum that is written. */
  remove(sum: UsageSum): void {
    this.#sums.delete(idOf(sum));
  }

  #sumOf({ ns, key, atMs }: BucketChange, window: UsageWindow): GrowingSum {
    const { entityId } = key;
    const resource = parsePlainResource(key.resource);
    const record = { ns, entityId, resource, window, startMs: windowStart(window, atMs) };
    const id = idOf(record);
    let sum = this.#sums.get(id);
    if (sum === undefined) this.#sums.set(id, (sum = { ...record, parts: [], latest: new Map() }));
    return sum;
  }
}

function idOf({ ns, entityId, resource, window, startMs }: Omit<UsageSum, 'parts'>): string {
  const { PK, SK } = buildUsageKey(ns, entityId, resource, window, startMs);
  return `${PK}\n${SK}`;
}

export function foldUsage(changes: Iterable<BucketChange>, windows = USAGE_WINDOWS): readonly UsageSum[] {
  return new UsageFold(windows).add(changes).sums();
}

export function totalOf(parts: readonly UsagePart[]): UsageCounts {
  return parts.reduce((sum, { counts }) => addUsage(sum, counts), NO_USAGE);
}

/** The first and the last change of each bucket shard. */
export function spansOf(parts: readonly UsagePart[]): ReadonlyMap<string, CountedSpan> {
  const spans = new Map<string, CountedSpan>();
  for (const { counted, sequence } of parts) {
    spans.set(counted, { first: spans.get(counted)?.first ?? sequence, last: sequence });
  }
  return spans;
}

/** The parts that a record does not count yet. `countedTo`: the position up to which it counts a bucket shard. */
export function newerParts(
  parts: readonly UsagePart[],
  countedTo: (counted: string) => string | undefined,
): readonly UsagePart[] {
  return parts.filter(({ counted, sequence }) => sequence > (countedTo(counted) ?? ''));
}

/** Groups of parts with at most `most` bucket shards. A condition names each shard, and its size is limited. */
export function inGroupsOf(most: number, parts: readonly UsagePart[]): readonly (readonly UsagePart[])[] {
  const shards = [...new Set(parts.map(({ counted }) => counted))];
  if (shards.length <= most) return [parts];
  const groups: UsagePart[][] = [];
  for (const part of parts) {
    const group = Math.floor(shards.indexOf(part.counted) / most);
    (groups[group] ??= []).push(part);
  }
  return groups;
}
