import type { AuditAction, AuditRecord, EntityRecord, NamespaceRecord, UsageRecord } from '../../../../backend.js';
import { ON_UNAVAILABLE, type OnUnavailable, type StoredConfig } from '../../../../core/config/config.js';
import { checkEntityId, checkLimitName, checkNamespace, checkResource } from '../../../../core/identifiers.js';
import { type Int, mul } from '../../../../core/int.js';
import type { Limit } from '../../../../core/limit.js';
import { MILLI } from '../../../../core/units.js';
import { USAGE_WINDOWS } from '../../../../core/usage/usage.js';
import { readText } from '../../table/attributes.js';
import { decodeConfig, decodeConfigWrites, decodeEntity } from '../../table/records.js';
import type { Item } from '../../client/transport.js';
import {
  fieldsOf,
  limitOf,
  mappable,
  plainOf,
  readInstant,
  readOptionalText,
  readWhole,
  requireWhole,
} from './legacy-fields.js';
import { Unmappable } from '../unmappable.js';

const SECOND_MS = 1_000;
/** The first number of a namespace's config sequence. Every config is newer than a converted bucket. */
export const FIRST_SEQUENCE = 1;

export function mapEntity(item: Item, id: string): EntityRecord {
  mappable(() => checkEntityId(id));
  // A record of this version whose parent an old client changed.
  if (item['created_at']?.N !== undefined) return decodeEntity(item);
  const fields = fieldsOf(item);
  const metadata = plainOf(fields['metadata']);
  const parentId = readOptionalText(fields, 'parent_id');
  if (parentId !== null) mappable(() => checkEntityId(parentId, 'parentId'));
  return {
    id,
    name: readOptionalText(fields, 'name'),
    parentId,
    cascade: fields['cascade']?.BOOL ?? false,
    metadata: typeof metadata === 'object' && metadata !== null ? (metadata as EntityRecord['metadata']) : {},
    createdAtMs: readInstant(fields, 'created_at') ?? 0,
    version: Number(readWhole(fields, 'version') ?? 1),
  };
}

export interface MappedConfig {
  readonly config: StoredConfig;
  /** How often the config was written. */
  readonly writes: number;
}

/** Maps one item per limit of a level. Periods are in seconds; the burst becomes the capacity. */
export function mapLimits(items: readonly { readonly item: Item; readonly limit: string }[]): MappedConfig {
  const limits = items.map(({ item, limit }) => {
    const fields = fieldsOf(item);
    const capacity = Number(readWhole(fields, 'burst') ?? requireWhole(fields, 'capacity'));
    const refillAmount = Number(readWhole(fields, 'refill_amount') ?? requireWhole(fields, 'capacity'));
    const refillPeriodMs = Number(requireWhole(fields, 'refill_period_seconds')) * SECOND_MS;
    return limitOf(limit, { capacity, refillAmount, refillPeriodMs });
  });
  const all = items.map(({ item }) => fieldsOf(item));
  const writes = Math.max(1, ...all.map((fields) => Number(readWhole(fields, 'config_version') ?? 1)));
  const onUnavailable = all.map(policyOf).find((policy) => policy !== null) ?? null;
  return { config: { limits: inOrder(limits), onUnavailable, v: FIRST_SEQUENCE }, writes };
}

/** Maps one item with all limits of a level. Periods are in seconds. `dropsSoft`: soft limits are enforced. */
export function mapConfig(item: Item, dropsSoft = false): MappedConfig {
  const fields = fieldsOf(item);
  // A config of this version in which an old client changed a setting. The limits are of this version.
  if (item['v'] !== undefined) {
    return { config: { ...decodeConfig(item), v: FIRST_SEQUENCE }, writes: decodeConfigWrites(item) };
  }
  // Limits that a calendar fills were dropped by the operator, or the record was refused before.
  const names = Object.keys(fields)
    .flatMap((name) => /^l_(.+)_cp$/.exec(name)?.[1] ?? [])
    .filter((name) => fields[`l_${name}_rsched`] === undefined);
  const limits = names.map((name) => {
    const capacity = Number(readWhole(fields, `l_${name}_bx`) ?? requireWhole(fields, `l_${name}_cp`));
    const refillAmount = Number(requireWhole(fields, `l_${name}_ra`));
    const refillPeriodMs = Number(requireWhole(fields, `l_${name}_rp`)) * SECOND_MS;
    const isSoft = fields[`l_${name}_soft`]?.BOOL === true && !dropsSoft;
    return limitOf(name, { capacity, refillAmount, refillPeriodMs, ...(isSoft ? { shadow: true } : {}) });
  });
  const config = { limits: inOrder(limits), onUnavailable: policyOf(fields), v: FIRST_SEQUENCE };
  return { config, writes: Number(readWhole(fields, 'config_version') ?? 1) };
}

function inOrder(limits: readonly Limit[]): readonly Limit[] | null {
  return limits.length === 0 ? null : limits.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function policyOf(fields: Item): OnUnavailable | null {
  const policy = readText(fields, 'on_unavailable') as OnUnavailable | undefined;
  return policy !== undefined && ON_UNAVAILABLE.includes(policy) ? policy : null;
}

/** Attributes of a usage record that are not counters. A counter has the name of its limit. */
const NO_COUNTER = /^(?:PK|SK|GSI\d[PS]K|ttl|data|entity_id|resource|window|window_start|window_end|total_events|wcu)$/;

/**
 * Counters are whole tokens. An event was the change of one limit, so an acquire of two limits was two events: acquires
 * = events / counters. Exact when every acquire took all limits that the record counts.
 */
export function mapUsage(item: Item, entityId: string, resource: string, start: string): UsageRecord {
  mappable(() => checkEntityId(entityId));
  mappable(() => checkResource(resource));
  const fields = fieldsOf(item);
  const window = USAGE_WINDOWS.find((known) => known === readText(fields, 'window'));
  const startMs = readInstant(fields, 'window_start') ?? Date.parse(start);
  if (window === undefined) throw new Unmappable('its window (hour, day or month) is not known');
  if (!Number.isFinite(startMs)) throw new Unmappable(`${start} is not a time`);
  const consumedMilli = new Map<string, Int>();
  for (const name of Object.keys(fields).toSorted()) {
    // `{limit}#od` of later releases counts how often a limit was in debt. This version has no such counter.
    if (NO_COUNTER.test(name) || name.endsWith('#od') || fields[name]?.N === undefined) continue;
    mappable(() => checkLimitName(name));
    consumedMilli.set(name, mul(Number(requireWhole(fields, name)), MILLI));
  }
  const counters = consumedMilli.size + (fields['wcu'] === undefined ? 0 : 1);
  const acquires = Math.ceil(Number(readWhole(fields, 'total_events') ?? 0) / Math.max(1, counters));
  return { entityId, resource, window, startMs, consumedMilli, acquires, expired: 0 };
}

/** This version's name of each old action. Unknown actions keep their names. */
const ACTIONS: Readonly<Record<string, AuditAction>> = {
  entity_created: 'entity.create',
  entity_updated: 'entity.update',
  entity_deleted: 'entity.delete',
  limits_set: 'config.set',
  limits_deleted: 'config.delete',
};

export function mapAudit(item: Item, subject: string, id: string): AuditRecord {
  const fields = fieldsOf(item);
  const atMs = readInstant(fields, 'timestamp') ?? Date.parse(id);
  if (!Number.isFinite(atMs)) throw new Unmappable('it has no time');
  const action = readText(fields, 'action') ?? 'unknown';
  const details = plainOf(fields['details']);
  const resource = readOptionalText(fields, 'resource');
  return {
    id,
    atMs,
    principal: readOptionalText(fields, 'principal'),
    action: ACTIONS[action] ?? (action as AuditAction),
    subject,
    before: null,
    after: details === null && resource === null ? null : { ...(details as object), ...(resource && { resource }) },
  };
}

export function mapNamespace(item: Item, under: 'id' | 'name', value: string): NamespaceRecord {
  const name = under === 'name' ? value : (readText(item, 'namespace_name') ?? readText(item, 'name'));
  const id = under === 'id' ? value : readText(item, 'namespace_id');
  if (id === undefined || name === undefined) throw new Unmappable('it does not name its namespace');
  mappable(() => checkNamespace(name));
  const status = readText(item, 'status') ?? 'active';
  if (status !== 'active' && status !== 'deleted' && status !== 'purging') {
    throw new Unmappable(`${status} is not a status of a namespace`);
  }
  return { id, name, status, createdAtMs: readInstant(item, 'created_at') ?? 0 };
}
