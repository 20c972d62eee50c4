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
import type { CountedSpan } from '../../bucket/expressions/add-usage.js';
import { buildUsageKey } from '../../table/keys.js';
import { USAGE_ATTRIBUTE } from '../../table/records.js';
import type { BucketChange } from '../decode.js';

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

  /** Forgets a sum that is written. */
  remove(sum: UsageSum): void {
    this.#sums.delete(idOf(sum));
  }

  #sumOf({ ns, key, atMs }: BucketChange, window: UsageWindow): GrowingSum {
    const { entityId } = key;
    const resource = parsePlainResource(key.resource);
    const place = { ns, entityId, resource, window, startMs: windowStart(window, atMs) };
    const id = idOf(place);
    let sum = this.#sums.get(id);
    if (sum === undefined) this.#sums.set(id, (sum = { ...place, parts: [], latest: new Map() }));
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
