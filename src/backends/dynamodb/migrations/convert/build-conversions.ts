import { checkBucketResource, checkEntityId } from '../../../../core/identifiers.js';
import type { EpochMs } from '../../../../core/units.js';
import { readKey } from '../../table/attributes.js';
import { buildMigratedWriteId } from '../../bucket/migrated-write-id.js';
import { buildShardItem } from '../../expressions/shard-item.js';
import { decodeShard } from '../../table/items.js';
import { buildShardKey } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import { type BucketPart, decodeComposite, decodeLimitBucket, foldParts } from '../legacy/legacy-buckets.js';
import { mappable } from '../legacy/legacy-fields.js';
import { type BucketPlan, planBucket, planStrays } from './plan-bucket.js';
import {
  convertAudit,
  convertConfig,
  convertEntity,
  convertLimits,
  convertNamespace,
  convertUsage,
  switched,
} from './record-conversions.js';
import { refuseSettings } from '../legacy/settings.js';
import type { Conversion, ConversionContext, ConversionPlan } from './conversion.js';
import type { OldRecord } from '../../schema/old-record.js';
import { Unmappable } from '../unmappable.js';

/** The conversion of records that belong together: one record, or all limit items of one bucket or level. */
export function buildConversion(context: ConversionContext, records: readonly OldRecord[]): Conversion | null {
  const [first] = records;
  if (first === undefined) return null;
  const { key, item } = first;
  const ns = context.namespaces.of(key.ns);
  if (ns === null)
    return refusedConversion(records, `its namespace ${key.ns} is not registered, and its name cannot be registered`);
  switch (key.kind) {
    case 'limit-bucket':
      return convertBucket(context, ns, key, itemsOf(records), false, () => records.flatMap(decodeLimit));
    case 'bucket':
      return convertBucket(context, ns, key, [item], false, () => {
        refuseSettings(first, context.drop);
        return [decodeComposite(item)];
      });
    case 'limit':
      return convertLimits(context, ns, key.level, records);
    case 'config':
      return convertConfig(context, ns, key.level, first);
    case 'entity':
      return convertEntity(context, ns, key.entityId, first);
    case 'audit':
      return convertAudit(ns, key, first);
    case 'usage':
      return convertUsage(ns, key, item);
    case 'namespace':
      return convertNamespace(key, item);
    case 'unreadable':
      return refusedConversion(records, 'one of its names contains "#", which is not allowed');
    case 'shard':
    case 'version':
      return null;
  }
}

/** A conversion whose plan throws `Unmappable` with the reason. */
function refusedConversion(records: readonly OldRecord[], reason: string): Conversion {
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
 * The conversion of a v0.9 bucket with all its shards, or of shards whose bucket was converted before. `shards`: the
 * old shards by number, including `met`.
 */
export function buildShardConversion(
  context: ConversionContext,
  met: OldRecord,
  shards: ReadonlyMap<number, Item>,
): Conversion | null {
  const { key } = met;
  if (key.kind !== 'shard' || key.ns === null) return null;
  const ns = context.namespaces.of(key.ns);
  if (ns === null)
    return refusedConversion([met], `its namespace ${key.ns} is not registered, and its name cannot be registered`);
  const first = shards.get(0);
  const decode = (): BucketPart[] => {
    for (const item of shards.values()) refuseSettings({ key, item }, context.drop);
    const count = Math.max(...[...shards].map(([number, item]) => Math.max(number + 1, countOf(item))));
    return [...shards].map(([number, item]) => decodeComposite(item, number, count));
  };
  const conversion = convertBucket(context, ns, key, [...shards.values()], first === undefined, decode);
  // The bucket was converted before, so the tokens of these shards are added to it, not compared with it.
  if (first === undefined) return { ...conversion, mode: 'switch' };
  if (ns !== key.ns) return conversion;
  return { ...conversion, mode: first, plan: () => replaceInPlace(conversion.plan(undefined)) };
}

export function countOf(item: Item): number {
  const count = Number(item['shard_count']?.N ?? 1);
  return Number.isSafeInteger(count) && count > 0 ? count : 1;
}

function convertBucket(
  context: ConversionContext,
  ns: string,
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
  olds: readonly Item[],
  isStray: boolean,
  decode: () => readonly BucketPart[],
): Conversion {
  const key = { entityId, resource, shard: 0 };
  const { migration } = context;
  const plan = (there: Item | undefined): ConversionPlan => {
    mappable(() => checkEntityId(entityId));
    mappable(() => checkBucketResource(resource));
    const parts = decode();
    const expected = foldParts(key, parts, (atMs: EpochMs) => buildMigratedWriteId(migration, atMs));
    const target = there === undefined ? null : decodeShard(there, []);
    if (isStray) return toConversionPlan(ns, planStrays(migration, parts, expected, target));
    return toConversionPlan(ns, planBucket(migration, expected, target));
  };
  return { olds, target: buildShardKey(ns, key), mode: 'copy', plan };
}

function toConversionPlan(ns: string, plan: BucketPlan): ConversionPlan {
  if (plan.kind === 'same') return plan;
  const item = buildShardItem(ns, plan.image);
  return plan.kind === 'copy' ? { kind: 'copy', item } : { kind: 'merge', item, strict: true };
}

function replaceInPlace(plan: ConversionPlan): ConversionPlan {
  return plan.kind === 'copy' ? switched(plan.item) : plan;
}
