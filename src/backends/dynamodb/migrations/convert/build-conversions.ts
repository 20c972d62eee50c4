import { checkBucketResource, checkEntityId } from '../../../../core/identifiers.js';
import type { EpochMs } from '../../../../core/units.js';
import { readKey } from '../../table/attributes.js';
import { buildMoveId } from '../../bucket/migrated-write-id.js';
import { buildShardItem } from '../../bucket/expressions/create.js';
import { decodeShard } from '../../table/items.js';
import { buildShardKey } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import { type BucketPart, decodeComposite, decodeLimitBucket, foldParts } from '../legacy/legacy-buckets.js';
import type { DisabledLevels } from '../legacy/disabled-levels.js';
import type { Homes } from '../legacy/target-namespaces.js';
import { mappable } from '../legacy/legacy-fields.js';
import { type BucketPlan, planBucket, planStrays } from './plan-bucket.js';
import {
  auditUnit,
  configUnit,
  entityUnit,
  limitsUnit,
  namespaceUnit,
  switched,
  usageUnit,
} from './record-conversions.js';
import { type DroppableSetting, refuseSettings } from '../legacy/settings.js';
import type { OldRecord, Plan, Unit } from './conversion.js';
import { Unmappable } from '../unmappable.js';

/** What old records are read with. */
export interface Surroundings {
  readonly migration: string;
  readonly homes: Homes;
  readonly disabled: DisabledLevels;
  /** Settings that the operator gives up. */
  readonly drop: ReadonlySet<DroppableSetting>;
}

/** The unit of records that belong together: one, or those of one bucket or level that had an item for each limit. */
export function buildUnit(around: Surroundings, records: readonly OldRecord[]): Unit | null {
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
      return limitsUnit(around, ns, key.level, records);
    case 'config':
      return configUnit(around, ns, key.level, first);
    case 'entity':
      return entityUnit(around, ns, key.entityId, first);
    case 'audit':
      return auditUnit(ns, key, first);
    case 'usage':
      return usageUnit(ns, key, item);
    case 'namespace':
      return namespaceUnit(key, item);
    case 'unreadable':
      return stuckUnit(records, 'one of its names contains "#", which is refused here');
    case 'shard':
    case 'version':
      return null;
  }
}

/** Records that go nowhere: their plan says why. */
function stuckUnit(records: readonly OldRecord[], reason: string): Unit {
  const [first = {}] = itemsOf(records);
  const plan = (): Plan => {
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
export function buildShardUnit(around: Surroundings, met: OldRecord, shards: ReadonlyMap<number, Item>): Unit | null {
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
  around: Surroundings,
  ns: string,
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
  olds: readonly Item[],
  areStrays: boolean,
  decode: () => readonly BucketPart[],
): Unit {
  const key = { entityId, resource, shard: 0 };
  const { migration } = around;
  const plan = (there: Item | undefined): Plan => {
    mappable(() => checkEntityId(entityId));
    mappable(() => checkBucketResource(resource));
    const parts = decode();
    const expected = foldParts(key, parts, (atMs: EpochMs) => buildMoveId(migration, atMs));
    const target = there === undefined ? null : decodeShard(there, []);
    if (areStrays) return asPlan(ns, planStrays(migration, parts, expected, target));
    return asPlan(ns, planBucket(migration, expected, target));
  };
  return { olds, target: buildShardKey(ns, key), mode: 'copy', plan };
}

function asPlan(ns: string, plan: BucketPlan): Plan {
  if (plan.kind === 'same') return plan;
  const item = buildShardItem(ns, plan.image);
  return plan.kind === 'copy' ? { kind: 'copy', item } : { kind: 'merge', item, strict: true };
}

function inPlaceOf(plan: Plan): Plan {
  return plan.kind === 'copy' ? switched(plan.item) : plan;
}
