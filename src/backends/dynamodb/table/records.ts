/** Encodes and decodes the records that operators set, and their history. Short stored names appear only here. */
import type { AuditAction, AuditRecord, EntityRecord, NamespaceRecord, UsageRecord } from '../../../backend.js';
import type { ConfigLevel, OnUnavailable, StoredConfig } from '../../../core/config/config.js';
import { ValidationError } from '../../../core/errors.js';
import { parsePlainResource } from '../../../core/identifiers.js';
import type { Int } from '../../../core/int.js';
import { hasBalance } from '../../../core/limit-kind.js';
import { parseOptions, printOptions } from '../../../core/limit-options.js';
import { Limit } from '../../../core/limit.js';
import { AUDIT_LIFE_MS, type UsageCounts, usageLifeMs, windowEnd } from '../../../core/usage/usage.js';
import type { EpochMs } from '../../../core/units.js';
import { decodeKind, encodePeriod, limitOfKind } from './stored-period.js';
import { json, number, readInt, readJson, readKey, readNumber, readText, required, text } from './attributes.js';
import {
  buildAuditKey,
  buildConfigKey,
  buildEntityKey,
  buildManagedRecordKey,
  buildNamespaceIdKey,
  buildNamespaceKey,
  buildSequenceKey,
  buildUsageKey,
  index,
  keyItem,
  MANAGED_PREFIX,
  parseAuditKey,
  parseUsageKey,
  REGISTRY,
  type ShardKey,
} from './keys.js';
import { ATTRIBUTE, decodePauseAttributes, encodePauseAttributes } from './items.js';
import type { Item } from '../client/transport.js';

const SECOND_MS = 1_000;

/** An item is limited to 400 KB, and an audit record contains the state before and after a change. */
const MAX_METADATA_BYTES = 128 * 1_024;

function ttlAfter(ms: EpochMs): Item {
  return { ttl: number(Math.ceil(ms / SECOND_MS)) };
}

/** `writes`: how often this level was written, including this write. */
export function encodeConfig(ns: string, level: ConfigLevel, config: StoredConfig, writes: number): Item {
  const key = buildConfigKey(ns, level);
  const owner = level.kind === 'system' ? '' : level.kind === 'resource' ? level.resource : level.entityId;
  const { limits, onUnavailable, v } = config;
  return {
    ...keyItem(key),
    v: number(v),
    config_version: number(writes),
    ...(onUnavailable === null ? {} : { on_unavailable: text(onUnavailable) }),
    ...(limits === null || limits.length === 0 ? {} : encodeLimits(limits)),
    GSI4PK: text(index.allOf(ns, owner)),
    GSI4SK: text(index.config(ns, key)),
    // A level without limits is not listed.
    ...(level.kind !== 'entity' || limits === null
      ? {}
      : { GSI3PK: text(index.entityConfigs(ns, level.resource)), GSI3SK: text(level.entityId) }),
  };
}

function encodeLimits(limits: readonly Limit[]): Item {
  const item: Item = { lo: text(limits.map(({ name }) => name).join(',')) };
  for (const limit of limits) {
    const { name, kind, capacity, refillAmount, cost } = limit;
    const options = printOptions(limit);
    if (hasBalance(kind)) {
      item[`l_${name}_cp`] = number(capacity);
      item[`l_${name}_ra`] = number(refillAmount);
    }
    item[`l_${name}_rp`] = number(encodePeriod(limit));
    if (cost !== undefined) item[`l_${name}_cost`] = number(cost);
    if (options !== '') item[`l_${name}_opt`] = text(options);
  }
  return item;
}

export function decodeConfig(item: Item): StoredConfig {
  return {
    limits: decodeLimits(item),
    onUnavailable: (readText(item, 'on_unavailable') as OnUnavailable | undefined) ?? null,
    v: readNumber(item, 'v') ?? 0,
  };
}

export function decodeConfigWrites(item: Item | undefined): number {
  return item === undefined ? 0 : (readNumber(item, 'config_version') ?? 0);
}

function decodeLimits(item: Item): readonly Limit[] | null {
  const names = Object.keys(item)
    .map((attribute) => /^l_(.+)_rp$/.exec(attribute)?.[1])
    .filter((name) => name !== undefined);
  const order = readText(item, 'lo')?.split(',') ?? [];
  const limits = names
    .toSorted((a, b) => order.indexOf(a) - order.indexOf(b) || (a < b ? -1 : 1))
    .map((name) => decodeLimit(item, name))
    .filter((limit) => limit !== null);
  return limits.length === 0 ? null : limits;
}

/** null unless all three numbers of the rule exist; an unlimited limit has its period only. */
function decodeLimit(item: Item, name: string): Limit | null {
  const capacity = readNumber(item, `l_${name}_cp`);
  const refillAmount = readNumber(item, `l_${name}_ra`);
  const refillPeriodMs = readNumber(item, `l_${name}_rp`);
  const cost = readNumber(item, `l_${name}_cost`);
  // Options that a newer version wrote are left out: the rule itself must stay readable.
  const stored = parseOptions(readText(item, `l_${name}_opt`) ?? '') ?? {};
  const options = cost === undefined ? stored : { ...stored, cost };
  if (refillPeriodMs === undefined) return null;
  const kind = decodeKind(refillPeriodMs);
  if (!hasBalance(kind)) return Limit.unlimited(name, options);
  if (capacity === undefined || refillAmount === undefined) return null;
  return limitOfKind(kind, name, { capacity, refillAmount, refillPeriodMs }, options);
}

/** The last number of a namespace's config sequence that was assigned. */
export function encodeSequence(ns: string, last: number): Item {
  return { ...keyItem(buildSequenceKey(ns)), v: number(last) };
}

export function decodeSequence(item: Item): number {
  return required(readNumber(item, 'v'), item, 'v');
}

/** Optional attributes of an entity: a change that clears the field must remove them. */
export const OPTIONAL_ENTITY_ATTRIBUTES = [
  'name',
  'parent_id',
  'bypass',
  'GSI1PK',
  'GSI1SK',
  ATTRIBUTE.pauseEnd,
  ATTRIBUTE.pauseReason,
] as const;

/** The number of entities that have this one as their parent. Not part of the entity's record or version. */
export const CHILDREN = 'children';

export function encodeEntity(ns: string, entity: EntityRecord): Item {
  const { id, name, parentId, cascade, bypass, metadata, createdAtMs, version, pause } = entity;
  const key = buildEntityKey(ns, id);
  const stored = JSON.stringify(metadata);
  if (Buffer.byteLength(stored) > MAX_METADATA_BYTES) {
    const expected = `at most ${MAX_METADATA_BYTES} bytes as JSON in DynamoDB`;
    throw new ValidationError('metadata', expected, Buffer.byteLength(stored));
  }
  return {
    ...keyItem(key),
    entity_id: text(id),
    ...(name === null ? {} : { name: text(name) }),
    ...(parentId === null
      ? {}
      : { parent_id: text(parentId), GSI1PK: text(index.children(ns, parentId)), GSI1SK: text(index.child(id)) }),
    cascade: { BOOL: cascade },
    ...(bypass === undefined ? {} : { bypass: { BOOL: bypass } }),
    metadata: text(stored),
    created_at: number(createdAtMs),
    version: number(version),
    ...encodePauseAttributes(pause),
    GSI4PK: text(index.allOf(ns, id)),
    GSI4SK: text(key.PK),
  };
}

export function decodeEntity(item: Item): EntityRecord {
  return {
    id: required(readText(item, 'entity_id'), item, 'entity_id'),
    name: readText(item, 'name') ?? null,
    ...decodeParent(item),
    metadata: (readJson(item, 'metadata') ?? {}) as EntityRecord['metadata'],
    createdAtMs: required(readNumber(item, 'created_at'), item, 'created_at'),
    version: required(readNumber(item, 'version'), item, 'version'),
  };
}

/** The part of an entity that an acquire needs: not its metadata, which may be large and would be cached. */
export function decodeParent(item: Item): Pick<EntityRecord, 'parentId' | 'cascade' | 'bypass' | 'pause'> {
  const pause = decodePauseAttributes(item);
  return {
    parentId: readText(item, 'parent_id') ?? null,
    cascade: item['cascade']?.BOOL ?? false,
    ...(item['bypass']?.BOOL === true ? { bypass: true as const } : {}),
    ...(pause === undefined ? {} : { pause }),
  };
}

export function decodeChildren(item: Item): number {
  return readNumber(item, CHILDREN) ?? 0;
}

export const NAMESPACE_ID = 'namespace_id';

/**
 * A namespace has two records: one under its id, which is kept forever, and one under its name while it is active.
 * `sinceMs`: the time of its last status change.
 */
export function encodeNamespace(under: 'id' | 'name', namespace: NamespaceRecord, sinceMs: EpochMs): Item {
  const { id, name, status, createdAtMs } = namespace;
  return {
    ...keyItem(under === 'id' ? buildNamespaceIdKey(id) : buildNamespaceKey(name)),
    [NAMESPACE_ID]: text(id),
    name: text(name),
    status: text(status),
    status_at: number(sinceMs),
    created_at: number(createdAtMs),
  };
}

export function decodeNamespace(item: Item): NamespaceRecord {
  return {
    id: required(readText(item, NAMESPACE_ID), item, NAMESPACE_ID),
    name: required(readText(item, 'name'), item, 'name'),
    status: required(readText(item, 'status'), item, 'status') as NamespaceRecord['status'],
    createdAtMs: required(readNumber(item, 'created_at'), item, 'created_at'),
  };
}

export function encodeAudit(ns: string, record: AuditRecord): Item {
  const { id, atMs, principal, action, subject, before, after } = record;
  return {
    ...keyItem(buildAuditKey(ns, subject, id)),
    action: text(action),
    ...(principal === null ? {} : { principal: text(principal) }),
    ...(before === null ? {} : { before: json(before) }),
    ...(after === null ? {} : { after: json(after) }),
    timestamp: number(atMs),
    ...ttlAfter(atMs + AUDIT_LIFE_MS),
    // Registry records are only listed by namespace, and are never purged.
    ...(ns === REGISTRY ? {} : { GSI4PK: text(index.allOf(ns, subject)), GSI4SK: text(index.audit(ns, id)) }),
  };
}

export function decodeAudit(item: Item): AuditRecord {
  const { subject, id } = parseAuditKey(readKey(item));
  return {
    id,
    atMs: required(readNumber(item, 'timestamp'), item, 'timestamp'),
    principal: readText(item, 'principal') ?? null,
    action: required(readText(item, 'action'), item, 'action') as AuditAction,
    subject,
    before: readJson(item, 'before') ?? null,
    after: readJson(item, 'after') ?? null,
  };
}

/** The fields of one object that a limits file owns. */
export function encodeManaged(ns: string, key: string, value: unknown): Item {
  return { ...keyItem(buildManagedRecordKey(ns, key)), value: json(value) };
}

export function decodeManaged(item: Item): { readonly key: string; readonly value: unknown } {
  return { key: readKey(item).SK.slice(MANAGED_PREFIX.length), value: readJson(item, 'value') };
}

/** The stored names of a usage record's attributes. */
export const USAGE_ATTRIBUTE = {
  acquires: 'ac',
  expired: 'un',
  consumed: (limit: string) => `u_${limit}`,
  /** The last change of a bucket shard that is counted: `q_{shard}`, and `q_{shard}~{hash}` for per-call limits. */
  counted: ({ resource, shard }: Pick<ShardKey, 'resource' | 'shard'>) =>
    `q_${shard}${resource.slice(parsePlainResource(resource).length)}`,
} as const;

export function encodeUsage(ns: string, record: UsageRecord): Item {
  const { entityId, resource, window, startMs, consumedMilli, acquires, expired } = record;
  const consumed = [...consumedMilli].map(([name, milli]) => [USAGE_ATTRIBUTE.consumed(name), number(milli)] as const);
  return {
    ...keyItem(buildUsageKey(ns, entityId, resource, window, startMs)),
    ...Object.fromEntries(consumed),
    [USAGE_ATTRIBUTE.acquires]: number(acquires),
    [USAGE_ATTRIBUTE.expired]: number(expired),
    ...usageConstants(ns, record),
  };
}

/**
 * Attributes that never change after the record is created, so that adding usage writes no index. A purge finds only
 * the monthly record, and then reads the whole partition: the monthly record outlives its hours and days.
 */
export function usageConstants(ns: string, record: Omit<UsageRecord, keyof UsageCounts>): Item {
  const { entityId, resource, window, startMs } = record;
  const key = buildUsageKey(ns, entityId, resource, window, startMs);
  return {
    ...ttlAfter(windowEnd(window, startMs) + usageLifeMs(window)),
    GSI2PK: text(index.resourceOf(ns, resource, entityId)),
    GSI2SK: text(index.usageOfResource(window, startMs, entityId)),
    ...(window === 'monthly' ? { GSI4PK: text(index.allOf(ns, entityId)), GSI4SK: text(index.usage(ns, key)) } : {}),
  };
}

export function decodeUsage(item: Item): UsageRecord {
  const consumedMilli = new Map<string, Int>();
  for (const attribute of Object.keys(item).toSorted()) {
    const milli = attribute.startsWith('u_') ? readInt(item, attribute) : undefined;
    if (milli !== undefined) consumedMilli.set(attribute.slice('u_'.length), milli);
  }
  return {
    ...parseUsageKey(readKey(item)),
    consumedMilli,
    acquires: readNumber(item, USAGE_ATTRIBUTE.acquires) ?? 0,
    expired: readNumber(item, USAGE_ATTRIBUTE.expired) ?? 0,
  };
}
