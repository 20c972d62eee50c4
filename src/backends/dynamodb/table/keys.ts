import type { ChargeReceipt } from '../../../backend.js';
import type { ConfigLevel } from '../../../core/config/config.js';
import { hashDigit } from '../../../core/identifiers.js';
import type { UsageWindow } from '../../../core/usage/usage.js';
import type { EpochMs } from '../../../core/units.js';
import type { Item } from '../client/transport.js';

/** The key of a record in the table. */
export interface RecordKey {
  readonly PK: string;
  readonly SK: string;
}

/** Names contain no `#`, and a namespace id contains no `/`, so every key can be parsed. */
export interface ShardKey {
  readonly entityId: string;
  /** The part of the key: `{resource}~{hash}` for per-call limits. */
  readonly resource: string;
  readonly shard: number;
}

export const STATE = '#STATE';
const DEFAULT_RESOURCE = '_default_';

export function buildShardKey(ns: string, { entityId, resource, shard }: ShardKey): RecordKey {
  return { PK: `${ns}/BUCKET#${entityId}#${resource}#${shard}`, SK: STATE };
}

export function parseShardKey(pk: string): (ShardKey & { readonly ns: string }) | null {
  const [head = '', entityId, resource, shard, more] = pk.split('#');
  if (!head.endsWith('/BUCKET') || entityId === undefined || resource === undefined || more !== undefined) return null;
  if (shard === undefined || !/^\d+$/.test(shard)) return null;
  return { ns: head.slice(0, -'/BUCKET'.length), entityId, resource, shard: Number(shard) };
}

/** The namespace of a key ends at the first slash: later slashes belong to names. */
export function parseNamespaceId(pk: string): string {
  return pk.slice(0, Math.max(0, pk.indexOf('/')));
}

export function buildEntityKey(ns: string, id: string): RecordKey {
  return { PK: `${ns}/ENTITY#${id}`, SK: '#META' };
}

export function parseEntityKey(pk: string): string | null {
  // The first slash ends the namespace. Later slashes, and text after them that looks like a prefix, belong to names.
  const at = pk.indexOf('/');
  return pk.startsWith('/ENTITY#', at) ? pk.slice(at + '/ENTITY#'.length) : null;
}

export function buildConfigKey(ns: string, level: ConfigLevel): RecordKey {
  switch (level.kind) {
    case 'entity':
      return { PK: `${ns}/ENTITY#${level.entityId}`, SK: `#CONFIG#${level.resource}` };
    case 'entity_default':
      return { PK: `${ns}/ENTITY#${level.entityId}`, SK: `#CONFIG#${DEFAULT_RESOURCE}` };
    case 'resource':
      return { PK: `${ns}/RESOURCE#${level.resource}`, SK: '#CONFIG' };
    case 'system':
      return { PK: `${ns}/SYSTEM#`, SK: '#CONFIG' };
  }
}

/** No resource begins with `_`, so the default cannot be mistaken for one. */
export function parseConfigKey({ PK, SK }: RecordKey): ConfigLevel | null {
  if (!SK.startsWith('#CONFIG')) return null;
  if (PK.endsWith('/SYSTEM#')) return { kind: 'system' };
  const resourceAt = PK.indexOf('/RESOURCE#');
  const entityId = parseEntityKey(PK);
  // An entity id cannot contain `/RESOURCE#`, because no name contains `#`.
  if (entityId === null) {
    return resourceAt < 0 ? null : { kind: 'resource', resource: PK.slice(resourceAt + '/RESOURCE#'.length) };
  }
  const resource = SK.slice('#CONFIG#'.length);
  return resource === DEFAULT_RESOURCE ? { kind: 'entity_default', entityId } : { kind: 'entity', entityId, resource };
}

export function buildSequenceKey(ns: string): RecordKey {
  return { PK: `${ns}/SYSTEM#`, SK: '#SEQ' };
}

export const MANAGED_PREFIX = '#MANAGED#';

export function buildManagedRecordKey(ns: string, key: string): RecordKey {
  return { PK: `${ns}/SYSTEM#`, SK: `${MANAGED_PREFIX}${key}` };
}

export const AUDIT_PREFIX = '#AUDIT#';

/** `subject`: an entity, `$SYSTEM`, `$RESOURCE:{name}` or, in the registry, `$NAMESPACE:{name}`. */
export function buildAuditKey(ns: string, subject: string, id: string): RecordKey {
  return { PK: `${ns}/AUDIT#${subject}`, SK: `${AUDIT_PREFIX}${id}` };
}

export function parseAuditKey({ PK, SK }: RecordKey): { readonly subject: string; readonly id: string } {
  return { subject: PK.slice(PK.indexOf('/AUDIT#') + '/AUDIT#'.length), id: SK.slice(AUDIT_PREFIX.length) };
}

export function buildUsagePrefix(resource: string, window: UsageWindow): string {
  return `#USAGE#${resource}#${window}#`;
}

/** An instant as text that sorts in the order of time. */
export function printInstant(ms: EpochMs): string {
  return new Date(ms).toISOString();
}

export function buildUsageKey(
  ns: string,
  entityId: string,
  resource: string,
  window: UsageWindow,
  startMs: EpochMs,
): RecordKey {
  return { PK: `${ns}/ENTITY#${entityId}`, SK: `${buildUsagePrefix(resource, window)}${printInstant(startMs)}` };
}

export function parseUsageKey({ PK, SK }: RecordKey): {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly startMs: EpochMs;
} {
  const [, , resource = '', window = '', start = ''] = SK.split('#');
  return { entityId: parseEntityKey(PK) ?? '', resource, window: window as UsageWindow, startMs: Date.parse(start) };
}

/** Unambiguous, because no name and no id contains "#". */
export function buildReceiptKey(ns: string, { entityId, resource, id }: Omit<ChargeReceipt, 'content'>): RecordKey {
  return { PK: `${ns}/RECEIPT#${entityId}#${resource}#${id}`, SK: '#RECEIPT' };
}

/** The partition of records outside of all namespaces: no namespace has this id. */
export const REGISTRY = '_';

export const VERSION_KEY: RecordKey = { PK: `${REGISTRY}/SYSTEM#`, SK: '#VERSION' };
export const NAMESPACE_PREFIX = '#NAMESPACE#';
export const NAMESPACE_ID_PREFIX = '#NSID#';

export function buildNamespaceKey(name: string): RecordKey {
  return { PK: `${REGISTRY}/SYSTEM#`, SK: `${NAMESPACE_PREFIX}${name}` };
}

export function buildNamespaceIdKey(id: string): RecordKey {
  return { PK: `${REGISTRY}/SYSTEM#`, SK: `${NAMESPACE_ID_PREFIX}${id}` };
}

export const WORKER_SHARD_PREFIX = '#SHARD#';

/** The key of the position of the workers in one shard of a stream. */
export function buildWorkerKey(streamLabel: string, shardId: string): RecordKey {
  return { PK: `${REGISTRY}/WORKER#${streamLabel}`, SK: `${WORKER_SHARD_PREFIX}${shardId}` };
}

/** The key of the progress of a migration, or of its current pass. */
export function buildMigrationKey(migration: string, part: 'state' | 'pass'): RecordKey {
  return { PK: `${REGISTRY}/MIGRATION#${migration}`, SK: part === 'state' ? STATE : '#PASS' };
}

/**
 * Index keys. Partitions that every tenant or resource would make hot have one of 16 suffixes, a hash of the entity.
 * Lists read all 16.
 */
export const SUFFIXES: readonly string[] = '0123456789abcdef'.split('');

export const index = {
  children: (ns: string, parentId: string) => `${ns}/PARENT#${parentId}`,
  child: (id: string) => `CHILD#${id}`,
  sweep: (ns: string) => `${ns}/SWEEP`,
  resource: (ns: string, resource: string, suffix: string) => `${ns}/RESOURCE#${resource}#${suffix}`,
  resourceOf: (ns: string, resource: string, entityId: string) => index.resource(ns, resource, hashDigit(entityId)),
  bucketOfResource: (entityId: string, keyPart: string, shard: number) => `BUCKET#${entityId}#${keyPart}#${shard}`,
  usageOfResource: (window: UsageWindow, startMs: EpochMs, entityId: string) =>
    `USAGE#${window}#${printInstant(startMs)}#${entityId}`,
  entityConfigs: (ns: string, resource: string) => `${ns}/ENTITY_CONFIG#${resource}`,
  bucketsOfEntity: (ns: string, entityId: string) => `${ns}/ENTITY#${entityId}`,
  bucketOfEntity: (keyPart: string, shard: number) => `BUCKET#${keyPart}#${shard}`,
  all: (ns: string, suffix: string) => `${ns}/ALL#${suffix}`,
  allOf: (ns: string, name: string) => index.all(ns, hashDigit(name)),
  /** Records that share a partition with others, or that are listed in their own order, have their own sort keys. */
  audit: (ns: string, id: string) => `${ns}/AUDIT#${id}`,
  configs: (ns: string) => `${ns}/CONFIG#`,
  config: (ns: string, { PK, SK }: RecordKey) =>
    `${index.configs(ns)}${PK.slice(ns.length + 1)}${SK.slice('#CONFIG'.length)}`,
  usage: (ns: string, { PK, SK }: RecordKey) => `${ns}/USAGE#${PK.slice(ns.length + 1)}${SK}`,
} as const;

/** The attributes that put a bucket on the sweep list. */
export const SWEEP_ATTRIBUTES = ['GSI1PK', 'GSI1SK'] as const;

/** The sweep list keys of a shard whose holders may have to be reclaimed or that may have to be merged. */
export function sweepKeys(ns: string, key: ShardKey): Readonly<Record<(typeof SWEEP_ATTRIBUTES)[number], string>> {
  return { GSI1PK: index.sweep(ns), GSI1SK: buildShardKey(ns, key).PK };
}

export function keyItem({ PK, SK }: RecordKey): Item {
  return { PK: { S: PK }, SK: { S: SK } };
}
