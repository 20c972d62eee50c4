import type { AuditRecord, EntityRecord } from '../../../../backend.js';
import { sameJson } from '../../../../core/manifest/same-json.js';
import { sameRule } from '../../../../core/limit.js';
import type { ConfigLevel, StoredConfig } from '../../../../core/config/config.js';
import { addUsage } from '../../../../core/usage/usage.js';
import type { UsageRecord } from '../../../../backend.js';
import { number, readNumber } from '../../table/attributes.js';
import {
  CHILDREN,
  decodeAudit,
  decodeConfig,
  decodeConfigWrites,
  decodeEntity,
  decodeUsage,
  encodeAudit,
  encodeConfig,
  encodeEntity,
  encodeUsage,
} from '../../table/records.js';
import type { Item } from '../../client/transport.js';
import { mappable } from '../legacy/legacy-fields.js';
import type { MappedConfig } from '../legacy/legacy-records.js';
import type { ConversionPlan } from './conversion.js';
import { Unmappable } from '../unmappable.js';

const DIFFERS = 'a different record exists already, and it is not known which is newer';

export function planEntity(ns: string, entity: EntityRecord, target: Item | undefined): ConversionPlan {
  const item = mappable(() => encodeEntity(ns, entity));
  if (target === undefined) return { kind: 'copy', item };
  const there = decodeEntity(target);
  if (sameJson(there, entity)) return { kind: 'same' };
  if (entity.version <= there.version) throw new Unmappable(DIFFERS);
  return { kind: 'copy', item: { ...item, ...childrenOf(target) } };
}

/** The number of children is stored with the entity, but is not part of its configuration. */
export function childrenOf(item: Item): Item {
  const children = item[CHILDREN];
  return children === undefined ? {} : { [CHILDREN]: children };
}

/** A config with an attribute that marks a setting which this version does not have. */
export interface MarkedConfig extends MappedConfig {
  readonly mark?: Item;
}

/** Combines what a level has in two records: old layouts stored limits and policy separately. */
export function planConfig(
  ns: string,
  level: ConfigLevel,
  mapped: MarkedConfig,
  target: Item | undefined,
): ConversionPlan {
  const { config, writes, mark } = mapped;
  if (target === undefined) return { kind: 'copy', item: { ...encodeConfig(ns, level, config, writes), ...mark } };
  const there = decodeConfig(target);
  const merged: StoredConfig = {
    limits: config.limits ?? there.limits,
    onUnavailable: config.onUnavailable ?? there.onUnavailable,
    v: there.v,
  };
  if (sameConfig(merged, there) && hasAll(target, mark)) return { kind: 'same' };
  const adds =
    (config.limits === null || there.limits === null || sameConfig({ ...there, limits: config.limits }, there)) &&
    (config.onUnavailable === null || there.onUnavailable === null || config.onUnavailable === there.onUnavailable);
  const known = decodeConfigWrites(target);
  if (!adds && writes <= known) throw new Unmappable(DIFFERS);
  return { kind: 'copy', item: { ...encodeConfig(ns, level, merged, Math.max(writes, known)), ...mark } };
}

function hasAll(target: Item, mark: Item = {}): boolean {
  return Object.entries(mark).every(([name, value]) => sameJson(target[name], value));
}

function sameConfig(a: StoredConfig, b: StoredConfig): boolean {
  const [ours, theirs] = [a.limits ?? [], b.limits ?? []];
  return (
    a.onUnavailable === b.onUnavailable &&
    ours.length === theirs.length &&
    ours.every((limit) => theirs.some((other) => sameRule(limit, other)))
  );
}

export function planAudit(ns: string, record: AuditRecord, old: Item, target: Item | undefined): ConversionPlan {
  const item = encodeOldAudit(ns, record, old);
  if (target === undefined) return { kind: 'copy', item };
  if (sameJson(decodeAudit(target), record)) return { kind: 'same' };
  throw new Unmappable(DIFFERS);
}

/** Keeps the record at least until its old expiry, and for ever if it had none. */
export function encodeOldAudit(ns: string, record: AuditRecord, old: Item): Item {
  const { ttl: own, ...item } = encodeAudit(ns, record);
  const ttl = readNumber(old, 'ttl');
  return ttl === undefined ? item : { ...item, ttl: number(Math.max(ttl, Number(own?.N ?? 0))) };
}

/** Adds to usage that this version has counted already. */
export function planUsage(ns: string, record: UsageRecord, target: Item | undefined): ConversionPlan {
  if (target === undefined) return { kind: 'merge', item: encodeUsage(ns, record), strict: false };
  const sum = { ...record, ...addUsage(decodeUsage(target), record) };
  return { kind: 'merge', item: { ...target, ...encodeUsage(ns, sum) }, strict: false };
}
