import type { UsageRecord } from '../backend.js';
import { type Int, sub } from '../core/int.js';
import { parsePlainResource } from '../core/identifiers.js';
import { addUsage, NO_USAGE, USAGE_WINDOWS, type UsageCounts, windowStart } from '../core/usage.js';
import type { CountedSpan } from '../backends/dynamodb/expressions/add-usage.js';
import { buildUsageKey } from '../backends/dynamodb/keys.js';
import { USAGE_ATTRIBUTE } from '../backends/dynamodb/records.js';
import type { BucketChange } from './decode.js';

/** What changes add to one usage record. */
export interface UsageSum extends Pick<UsageRecord, 'entityId' | 'resource' | 'window' | 'startMs'> {
  readonly ns: string;
  /** Those of one bucket shard in their order, each once. */
  readonly parts: readonly UsagePart[];
}

export interface UsagePart {
  /** The attribute of the record that says up to where this bucket shard is counted. */
  readonly counted: string;
  readonly sequence: string;
  readonly counts: UsageCounts;
}

/**
 * What a change has used. A removal uses nothing: what the shard counted was counted when it happened. Nor does a merge,
 * in which a shard takes over what the other one counted; in no other write do the shards become fewer. Nor does what
 * counts for another layout: that has usage of its own, which is moved as it is.
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
  /** Of each bucket shard the last change. */
  readonly latest: Map<string, string>;
}

/** Sums per usage record. A change that comes again, or after a later one of its shard, is left out: it is a replay. */
export function foldUsage(changes: Iterable<BucketChange>): UsageSum[] {
  const sums = new Map<string, GrowingSum>();
  for (const change of changes) {
    const counts = usageOf(change);
    if (counts.consumedMilli.size === 0 && counts.acquires === 0 && counts.expired === 0) continue;
    const { ns, key, atMs, sequence } = change;
    const { entityId } = key;
    const resource = parsePlainResource(key.resource);
    const counted = USAGE_ATTRIBUTE.counted(key);
    for (const window of USAGE_WINDOWS) {
      const startMs = windowStart(window, atMs);
      const { PK, SK } = buildUsageKey(ns, entityId, resource, window, startMs);
      const id = `${PK}\n${SK}`;
      let sum = sums.get(id);
      if (sum === undefined) {
        sum = { ns, entityId, resource, window, startMs, parts: [], latest: new Map() };
        sums.set(id, sum);
      }
      if (sequence <= (sum.latest.get(counted) ?? '')) continue;
      sum.latest.set(counted, sequence);
      sum.parts.push({ counted, sequence, counts });
    }
  }
  return [...sums.values()];
}

export function totalOf(parts: readonly UsagePart[]): UsageCounts {
  return parts.reduce((sum, { counts }) => addUsage(sum, counts), NO_USAGE);
}

/** Of each bucket shard, the first and the last change. */
export function spansOf(parts: readonly UsagePart[]): ReadonlyMap<string, CountedSpan> {
  const spans = new Map<string, CountedSpan>();
  for (const { counted, sequence } of parts) {
    spans.set(counted, { first: spans.get(counted)?.first ?? sequence, last: sequence });
  }
  return spans;
}

/** Parts that a record does not count yet; `countedTo`: up to where it counts a bucket shard. */
export function newerParts(
  parts: readonly UsagePart[],
  countedTo: (counted: string) => string | undefined,
): readonly UsagePart[] {
  return parts.filter(({ counted, sequence }) => sequence > (countedTo(counted) ?? ''));
}

/** Groups of parts with at most so many bucket shards: a condition names each, and has an end. */
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
