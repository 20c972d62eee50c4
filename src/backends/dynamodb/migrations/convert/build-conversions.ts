import { checkBucketResource, checkEntityId } from '../../../../core/identifiers.js';
import type { EpochMs } from '../../../../core/units.js';
import { readKey } from '../../table/attributes.js';
import { buildMigratedWriteId } from '../../bucket/migrated-write-id.js';
import { buildShardItem } from '../../bucket/expressions/create.js';
import { decodeShard } from '../../table/items.js';
import { buildShardKey } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import { type BucketPart, decodeComposite, decodeLimitBucket, foldParts } from '../legacy/legacy-buckets.js';
import type { DisabledLevels } from '../legacy/disabled-levels.js';
import type { TargetNamespaces } from '../legacy/target-namespaces.js';
import { mappable } from '../legacy/legacy-fields.js';
import { type BucketPlan, planBucket, planStrays } from './plan-bucket.js';
import {
  convertAudit,
  convertConfig,
  convertEntity,
  convertLimits,
  convertNamespace,
  switched,
  convertUsage,
} from './record-conversions.js';
import { type DroppableSetting, refuseSettings } from '../legacy/settings.js';
import type { OldRecord, ConversionPlan, Conversion } from './conversion.js';
import { Unmappable } from '../unmappable.js';

/** What old records are read with. */
export interface ConversionContext {
  readonly migration: string;
  readonly homes: TargetNamespaces;
  readonly disabled: DisabledLevels;
  /** Settings that the operator gives up. */
  readonly drop: ReadonlySet<DroppableSetting>;
}

/** The unit of records that belong together: one, or those of one bucket or level that had an item for each limit. */
export function buildConversion(around: ConversionContext, records: readonly OldRecord[]): Conversion | null {
  const [first] = records;
  if (first === undefined) return null;
  const { key, item } = first;
  const ns = around.homes.of(key.ns);
  if (ns === null) return stuckUnit(records, `its namespace ${key.ns} is registered nowhere, and cannot be`);
  switch (key.kind) {
    case 'limit-bucket':
      return bucketUnit(around, ns, key, itemsOf(records), false, () => records.flatMap(decodeLimit));
    case 'bucket':
      return bucketUnit(around, ns, key, [item], false, () => {
        refuseSettings(first, around.drop);
        return [decodeComposite(item)];
      });
    case 'limit':
      return convertLimits(around, ns, key.level, records);
    case 'config':
      return convertConfig(around, ns, key.level, first);
    case 'entity':
      return convertEntity(around, ns, key.entityId, first);
    case 'audit':
      return convertAudit(ns, key, first);
    case 'usage':
      return convertUsage(ns, key, item);
    case 'namespace':
      return convertNamespace(key, item);
    case 'unreadable':
      return stuckUnit(records, 'one of its names contains "#", which is refused here');
    case 'shard':
    case 'version':
      return null;
  }
}

/** Records that go nowhere: their plan says why. */
function stuckUnit(records: readonly OldRecord[], reason: string): Conversion {
  const [first = {}] = itemsOf(records);
  const plan = (): ConversionPlan => {
    throw new Unmappable(reason);
  };
  return { olds: itemsOf(records), target: readKey(first), mode: first, plan };
}

function itemsOf(records: readonly OldRecord[]): readonly Item[] {
  return records.map(({ item }) => item);
}

function decodeLimit({ key, item }: OldRecord): readonly BucketPart[] {
  return key.kind === 'limit-bucket' ? [decodeLimitBucket(item, key.limit)] : [];
}

/**
 * A bucket of v0.9, all shards together, or a shard whose bucket has been moved before. `shards`: those that are old, by
 * their number, the one that was met included.
 */
export function buildShardConversion(
  around: ConversionContext,
  met: OldRecord,
  shards: ReadonlyMap<number, Item>,
): Conversion | null {
  const { key } = met;
  if (key.kind !== 'shard' || key.ns === null) return null;
  const ns = around.homes.of(key.ns);
  if (ns === null) return stuckUnit([met], `its namespace ${key.ns} is registered nowhere, and cannot be`);
  const first = shards.get(0);
  const decode = (): BucketPart[] => {
    for (const item of shards.values()) refuseSettings({ key, item }, around.drop);
    const count = Math.max(...[...shards].map(([number, item]) => Math.max(number + 1, countOf(item))));
    return [...shards].map(([number, item]) => decodeComposite(item, number, count));
  };
  const unit = bucketUnit(around, ns, key, [...shards.values()], first === undefined, decode);
  // Its parts were read before: what is left of them now is added, not compared.
  if (first === undefined) return { ...unit, mode: 'switch' };
  if (ns !== key.ns) return unit;
  return { ...unit, mode: first, plan: () => inPlaceOf(unit.plan(undefined)) };
}

export function countOf(item: Item): number {
  const count = Number(item['shard_count']?.N ?? 1);
  return Number.isSafeInteger(count) && count > 0 ? count : 1;
}

function bucketUnit(
  around: ConversionContext,
  ns: string,
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
  olds: readonly Item[],
  areStrays: boolean,
  decode: () => readonly BucketPart[],
): Conversion {
  const key = { entityId, resource, shard: 0 };
  const { migration } = around;
  const plan = (there: Item | undefined): ConversionPlan => {
    mappable(() => checkEntityId(entityId));
    mappable(() => checkBucketResource(resource));
    const parts = decode();
    const expected = foldParts(key, parts, (atMs: EpochMs) => buildMigratedWriteId(migration, atMs));
    const target = there === undefined ? null : decodeShard(there, []);
    if (areStrays) return asPlan(ns, planStrays(migration, parts, expected, target));
    return asPlan(ns, planBucket(migration, expected, target));
  };
  return { olds, target: buildShardKey(ns, key), mode: 'copy', plan };
}

function asPlan(ns: string, plan: BucketPlan): ConversionPlan {
  if (plan.kind === 'same') return plan;
  const item = buildShardItem(ns, plan.image);
  return plan.kind === 'copy' ? { kind: 'copy', item } : { kind: 'merge', item, strict: true };
}

function inPlaceOf(plan: ConversionPlan): ConversionPlan {
  return plan.kind === 'copy' ? switched(plan.item) : plan;
}
