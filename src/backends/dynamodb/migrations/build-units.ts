import type { ConfigLevel } from '../../../core/config.js';
import { checkBucketResource, checkEntityId, checkResource } from '../../../core/identifiers.js';
import type { EpochMs } from '../../../core/units.js';
import { buildMoveId } from '../move-id.js';
import { buildShardItem } from '../expressions/create.js';
import { decodeShard } from '../items.js';
import {
  buildAuditKey,
  buildConfigKey,
  buildEntityKey,
  buildNamespaceIdKey,
  buildNamespaceKey,
  buildShardKey,
  buildUsageKey,
} from '../keys.js';
import { encodeConfig, encodeEntity, encodeNamespace } from '../records.js';
import type { Item } from '../transport.js';
import { type BucketPart, decodeComposite, decodeLimitBucket, foldParts } from './legacy-buckets.js';
import { mappable } from './legacy-fields.js';
import { mapAudit, mapConfig, mapEntity, mapLimits, mapNamespace, mapUsage } from './legacy-records.js';
import { type BucketPlan, planBucket, planStray } from './plan-bucket.js';
import { childrenOf, encodeOldAudit, planAudit, planConfig, planEntity, planUsage } from './plan-records.js';
import type { OldRecord, Plan, Unit } from './unit.js';

/** What old records are read with. */
export interface Surroundings {
  readonly migration: string;
  /** Where records without a namespace go. */
  readonly defaultNs: string;
}

/** Shards of a bucket that were read beside the one that was met. */
export interface ShardFamily {
  /** Those that are old, by their number, the one that was met included. */
  readonly shards: ReadonlyMap<number, Item>;
}

/** The unit of records that belong together: one, or those of one bucket or level that had an item for each limit. */
export function buildUnit(around: Surroundings, records: readonly OldRecord[]): Unit | null {
  const [first] = records;
  if (first === undefined) return null;
  const { key, item } = first;
  const ns = key.ns ?? around.defaultNs;
  const olds = records.map((record) => record.item);
  const inPlace = key.ns !== null;
  switch (key.kind) {
    case 'limit-bucket': {
      const parts = (): BucketPart[] =>
        records.flatMap((record) =>
          record.key.kind === 'limit-bucket' ? [decodeLimitBucket(record.item, record.key.limit)] : [],
        );
      return bucketUnit(around, ns, key.entityId, key.resource, olds, parts);
    }
    case 'bucket':
      return bucketUnit(around, ns, key.entityId, key.resource, olds, () => [decodeComposite(item)]);
    case 'limit': {
      const limits = records.flatMap((record) =>
        record.key.kind === 'limit' ? [{ item: record.item, limit: record.key.limit }] : [],
      );
      const target = buildConfigKey(ns, key.level);
      const plan = (there: Item | undefined): Plan => {
        checkLevel(key.level);
        return planConfig(ns, key.level, mapLimits(limits), there);
      };
      return { olds, target, mode: 'copy', sequenceOf: ns, plan };
    }
    case 'config': {
      const target = buildConfigKey(ns, key.level);
      const plan = (there: Item | undefined): Plan => {
        checkLevel(key.level);
        const mapped = mapConfig(item);
        if (!inPlace) return planConfig(ns, key.level, mapped, there);
        return switched(encodeConfig(ns, key.level, mapped.config, mapped.writes));
      };
      return { olds, target, mode: inPlace ? item : 'copy', sequenceOf: ns, plan };
    }
    case 'entity': {
      const plan = (there: Item | undefined): Plan => {
        const entity = mapEntity(item, key.entityId);
        if (!inPlace) return planEntity(ns, entity, there);
        return switched({ ...mappable(() => encodeEntity(ns, entity)), ...childrenOf(item) });
      };
      return { olds, target: buildEntityKey(ns, key.entityId), mode: inPlace ? item : 'copy', plan };
    }
    case 'audit': {
      const plan = (there: Item | undefined): Plan => {
        const record = mapAudit(item, key.subject, key.id);
        return inPlace ? switched(encodeOldAudit(ns, record, item)) : planAudit(ns, record, item, there);
      };
      return { olds, target: buildAuditKey(ns, key.subject, key.id), mode: inPlace ? item : 'copy', plan };
    }
    case 'usage': {
      const { entityId, resource, window } = key;
      const plan = (there: Item | undefined): Plan => planUsage(ns, mapUsage(item, entityId, resource, window), there);
      return { olds, target: usageKeyOf(ns, first), mode: 'switch', plan };
    }
    case 'namespace': {
      const target = key.under === 'id' ? buildNamespaceIdKey(key.value) : buildNamespaceKey(key.value);
      const plan = (): Plan => {
        const namespace = mapNamespace(item, key.under, key.value);
        // A name leads to an active namespace, or to none.
        if (key.under === 'name' && namespace.status !== 'active') return { kind: 'drop' };
        return switched(encodeNamespace(key.under, namespace, namespace.createdAtMs));
      };
      return { olds, target, mode: item, plan };
    }
    case 'shard':
    case 'version':
      return null;
  }
}

/** A bucket of v0.9, all shards together, or a shard whose bucket has been moved before. */
export function buildShardUnit(around: Surroundings, met: OldRecord, { shards }: ShardFamily): Unit | null {
  const { key } = met;
  if (key.kind !== 'shard' || key.ns === null) return null;
  const { ns, entityId, resource } = key;
  const first = shards.get(0);
  const decode = (): BucketPart[] => {
    const count = Math.max(...[...shards].map(([number, item]) => Math.max(number + 1, countOf(item))));
    return [...shards].map(([number, item]) => decodeComposite(item, number, count));
  };
  const unit = bucketUnit(around, ns, entityId, resource, [...shards.values()], decode);
  if (first !== undefined) return { ...unit, mode: first, plan: () => inPlaceOf(unit.plan(undefined)) };
  // Its parts were read before: what is left of them now is added, not compared.
  return { ...unit, mode: 'switch' };
}

export function countOf(item: Item): number {
  const count = Number(item['shard_count']?.N ?? 1);
  return Number.isSafeInteger(count) && count > 0 ? count : 1;
}

function bucketUnit(
  around: Surroundings,
  ns: string,
  entityId: string,
  resource: string,
  olds: readonly Item[],
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
    const [only] = parts;
    const stray = olds.every((item) => item['SK']?.S === '#STATE') && parts.length === 1 && only !== undefined;
    return asPlan(ns, stray ? planStray(migration, only, expected, target) : planBucket(migration, expected, target));
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

function switched(item: Item): Plan {
  return { kind: 'merge', item, strict: false };
}

/** Nobody could ask for what has a name that is refused. */
function checkLevel(level: ConfigLevel): void {
  if ('entityId' in level) mappable(() => checkEntityId(level.entityId));
  if ('resource' in level) mappable(() => checkResource(level.resource));
}

/** Of a record that cannot be mapped, its own: nothing is read or written there. */
function usageKeyOf(ns: string, { key, item }: OldRecord): { readonly PK: string; readonly SK: string } {
  const own = { PK: item['PK']?.S ?? '', SK: item['SK']?.S ?? '' };
  if (key.kind !== 'usage') return own;
  try {
    const { entityId, resource, window, startMs } = mapUsage(item, key.entityId, key.resource, key.window);
    return buildUsageKey(ns, entityId, resource, window, startMs);
  } catch {
    return own;
  }
}
