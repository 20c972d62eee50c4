import type { ConfigLevel } from '../../../core/config.js';
import { checkEntityId, checkResource } from '../../../core/identifiers.js';
import { readKey } from '../attributes.js';
import {
  buildAuditKey,
  buildConfigKey,
  buildEntityKey,
  buildNamespaceIdKey,
  buildNamespaceKey,
  buildUsageKey,
  type RecordKey,
} from '../keys.js';
import { encodeConfig, encodeEntity, encodeNamespace } from '../records.js';
import type { Item } from '../transport.js';
import { mappable } from './legacy-fields.js';
import type { LegacyKey } from './legacy-key.js';
import { mapAudit, mapConfig, mapEntity, mapLimits, mapNamespace, mapUsage } from './legacy-records.js';
import { childrenOf, encodeOldAudit, planAudit, planConfig, planEntity, planUsage } from './plan-records.js';
import type { OldRecord, Plan, Unit } from './unit.js';
import { Unmappable } from './unmappable.js';

type KeyOf<Kind extends LegacyKey['kind']> = Extract<LegacyKey, { readonly kind: Kind }>;

/** What takes an old record's place, in the transaction that would have removed it. */
export function switched(item: Item): Plan {
  return { kind: 'merge', item, strict: false };
}

/** A record that has its namespace stands where it will stand. */
function recordUnit(
  { key, item }: OldRecord,
  target: RecordKey,
  encode: () => Item,
  plan: (there: Item | undefined) => Plan,
): Unit {
  if (key.ns === null) return { olds: [item], target, mode: 'copy', plan };
  return { olds: [item], target, mode: item, plan: () => switched(encode()) };
}

export function limitsUnit(ns: string, level: ConfigLevel, records: readonly OldRecord[]): Unit {
  const limits = records.flatMap(({ key, item }) => (key.kind === 'limit' ? [{ item, limit: key.limit }] : []));
  const plan = (there: Item | undefined): Plan => {
    checkLevel(level);
    return planConfig(ns, level, mapLimits(limits), there);
  };
  const olds = records.map(({ item }) => item);
  return { olds, target: buildConfigKey(ns, level), mode: 'copy', sequenceOf: ns, plan };
}

export function configUnit(ns: string, level: ConfigLevel, record: OldRecord): Unit {
  const map = () => {
    checkLevel(level);
    return mapConfig(record.item);
  };
  const encode = (): Item => {
    const { config, writes } = map();
    return encodeConfig(ns, level, config, writes);
  };
  const plan = (there: Item | undefined): Plan => planConfig(ns, level, map(), there);
  return { ...recordUnit(record, buildConfigKey(ns, level), encode, plan), sequenceOf: ns };
}

/** Nobody could ask for what has a name that is refused. */
function checkLevel(level: ConfigLevel): void {
  if ('entityId' in level) mappable(() => checkEntityId(level.entityId));
  if ('resource' in level) mappable(() => checkResource(level.resource));
}

export function entityUnit(ns: string, id: string, record: OldRecord): Unit {
  const { item } = record;
  const encode = (): Item => ({ ...mappable(() => encodeEntity(ns, mapEntity(item, id))), ...childrenOf(item) });
  const plan = (there: Item | undefined): Plan => planEntity(ns, mapEntity(item, id), there);
  return recordUnit(record, buildEntityKey(ns, id), encode, plan);
}

export function auditUnit(ns: string, { subject, id }: KeyOf<'audit'>, record: OldRecord): Unit {
  const { item } = record;
  const encode = (): Item => encodeOldAudit(ns, mapAudit(item, subject, id), item);
  const plan = (there: Item | undefined): Plan => planAudit(ns, mapAudit(item, subject, id), item, there);
  return recordUnit(record, buildAuditKey(ns, subject, id), encode, plan);
}

export function usageUnit(ns: string, { entityId, resource, window }: KeyOf<'usage'>, item: Item): Unit {
  const map = () => mapUsage(item, entityId, resource, window);
  const plan = (there: Item | undefined): Plan => planUsage(ns, map(), there);
  const olds = [item];
  try {
    const usage = map();
    const target = buildUsageKey(ns, entityId, resource, usage.window, usage.startMs);
    return { olds, target, mode: 'switch', plan };
  } catch (error) {
    if (!(error instanceof Unmappable)) throw error;
    // It goes nowhere, and its plan says why.
    return { olds, target: readKey(item), mode: item, plan };
  }
}

export function namespaceUnit({ under, value }: KeyOf<'namespace'>, item: Item): Unit {
  const plan = (): Plan => {
    const namespace = mapNamespace(item, under, value);
    // A name leads to an active namespace, or to none.
    if (under === 'name' && namespace.status !== 'active') return { kind: 'drop' };
    return switched(encodeNamespace(under, namespace, namespace.createdAtMs));
  };
  const target = under === 'id' ? buildNamespaceIdKey(value) : buildNamespaceKey(value);
  return { olds: [item], target, mode: item, plan };
}
