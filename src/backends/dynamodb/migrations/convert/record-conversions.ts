import type { ConfigLevel } from '../../../../core/config/config.js';
import { checkEntityId, checkResource } from '../../../../core/identifiers.js';
import { readKey } from '../../table/attributes.js';
import {
  buildAuditKey,
  buildConfigKey,
  buildEntityKey,
  buildNamespaceIdKey,
  buildNamespaceKey,
  buildUsageKey,
  type RecordKey,
} from '../../table/keys.js';
import { decodePauseAttributes, encodePauseAttributes } from '../../table/items.js';
import { encodeConfig, encodeEntity, encodeNamespace } from '../../table/records.js';
import type { Item } from '../../client/transport.js';
import type { Conversion, ConversionContext, ConversionPlan } from './conversion.js';
import { mappable } from '../legacy/legacy-fields.js';
import type { LegacyKey } from '../../schema/legacy-key.js';
import { mapAudit, mapConfig, mapEntity, mapLimits, mapNamespace, mapUsage } from '../legacy/legacy-records.js';
import {
  childrenOf,
  encodeOldAudit,
  type MarkedConfig,
  planAudit,
  planConfig,
  planEntity,
  planUsage,
} from './plan-records.js';
import { refuseSettings } from '../legacy/settings.js';
import type { OldRecord } from '../../schema/old-record.js';
import { Unmappable } from '../unmappable.js';

type KeyOf<Kind extends LegacyKey['kind']> = Extract<LegacyKey, { readonly kind: Kind }>;

/** A new record that replaces an old record in the transaction that would have removed it. */
export function switched(item: Item): ConversionPlan {
  return { kind: 'merge', item, strict: false };
}

/** A record in a namespace keeps its key. */
function convertRecord(
  { item }: OldRecord,
  target: RecordKey,
  encode: () => Item,
  plan: (there: Item | undefined) => ConversionPlan,
): Conversion {
  const { PK, SK } = readKey(item);
  if (PK !== target.PK || SK !== target.SK) return { olds: [item], target, mode: 'copy', plan };
  return { olds: [item], target, mode: item, plan: () => switched(encode()) };
}

/** The keys of the same record in other sources that are converted to the same namespace before this one. */
function rivalsOf(
  { namespaces }: ConversionContext,
  target: string,
  own: string | null | undefined,
  build: (ns: string) => RecordKey,
): readonly RecordKey[] {
  const sources = namespaces.sourcesOf(target);
  const earlier = own === undefined ? sources : sources.slice(0, sources.indexOf(own));
  return earlier.map((ns) => {
    const { PK, SK } = build(ns ?? '');
    return { PK: ns === null ? PK.slice(1) : PK, SK };
  });
}

export function convertLimits(
  context: ConversionContext,
  ns: string,
  level: ConfigLevel,
  records: readonly OldRecord[],
): Conversion {
  const limits = records.flatMap(({ key, item }) => (key.kind === 'limit' ? [{ item, limit: key.limit }] : []));
  const plan = (there: Item | undefined): ConversionPlan => {
    checkLevel(level);
    return planConfig(ns, level, mapLimits(limits), there);
  };
  const rivals = rivalsOf(context, ns, undefined, (source) => buildConfigKey(source, level));
  const olds = records.map(({ item }) => item);
  return { olds, target: buildConfigKey(ns, level), mode: 'copy', sequenceOf: ns, rivals, plan };
}

export function convertConfig(
  context: ConversionContext,
  ns: string,
  level: ConfigLevel,
  record: OldRecord,
): Conversion {
  const { key, item } = record;
  const map = (): MarkedConfig => {
    checkLevel(level);
    refuseSettings(record, context.drop);
    const { config, writes } = mapConfig(item, context.drop.has('soft'));
    const { mark, ...applied } = context.disabled.apply(level, item, config, [key.ns, ns]);
    // A bucket that was paused here, before an old client changed its config, stays paused.
    return { ...applied, mark: { ...encodePauseAttributes(decodePauseAttributes(item)), ...mark }, writes };
  };
  const encode = (): Item => {
    const { config, writes, mark } = map();
    return { ...encodeConfig(ns, level, config, writes), ...mark };
  };
  const rivals = rivalsOf(context, ns, key.ns, (source) => buildConfigKey(source, level));
  const plan = (there: Item | undefined): ConversionPlan => planConfig(ns, level, map(), there);
  return { ...convertRecord(record, buildConfigKey(ns, level), encode, plan), sequenceOf: ns, rivals };
}

/** No call could reach a level with an invalid name. */
function checkLevel(level: ConfigLevel): void {
  if ('entityId' in level) mappable(() => checkEntityId(level.entityId));
  if ('resource' in level) mappable(() => checkResource(level.resource));
}

export function convertEntity(context: ConversionContext, ns: string, id: string, record: OldRecord): Conversion {
  const { key, item } = record;
  const encode = (): Item => ({ ...mappable(() => encodeEntity(ns, mapEntity(item, id))), ...childrenOf(item) });
  const plan = (there: Item | undefined): ConversionPlan => planEntity(ns, mapEntity(item, id), there);
  const rivals = rivalsOf(context, ns, key.ns, (source) => buildEntityKey(source, id));
  return { ...convertRecord(record, buildEntityKey(ns, id), encode, plan), rivals };
}

export function convertAudit(ns: string, { subject, id }: KeyOf<'audit'>, record: OldRecord): Conversion {
  const { item } = record;
  const encode = (): Item => encodeOldAudit(ns, mapAudit(item, subject, id), item);
  const plan = (there: Item | undefined): ConversionPlan => planAudit(ns, mapAudit(item, subject, id), item, there);
  return convertRecord(record, buildAuditKey(ns, subject, id), encode, plan);
}

export function convertUsage(ns: string, { entityId, resource, window }: KeyOf<'usage'>, item: Item): Conversion {
  const map = () => mapUsage(item, entityId, resource, window);
  const plan = (there: Item | undefined): ConversionPlan => planUsage(ns, map(), there);
  const olds = [item];
  try {
    const usage = map();
    const target = buildUsageKey(ns, entityId, resource, usage.window, usage.startMs);
    return { olds, target, mode: 'switch', plan };
  } catch (error) {
    if (!(error instanceof Unmappable)) throw error;
    // The plan of this conversion throws the reason.
    return { olds, target: readKey(item), mode: item, plan };
  }
}

export function convertNamespace({ under, value }: KeyOf<'namespace'>, item: Item): Conversion {
  const plan = (): ConversionPlan => {
    const namespace = mapNamespace(item, under, value);
    // A name record leads to an active namespace, or it does not exist.
    if (under === 'name' && namespace.status !== 'active') return { kind: 'drop' };
    return switched(encodeNamespace(under, namespace, namespace.createdAtMs));
  };
  const target = under === 'id' ? buildNamespaceIdKey(value) : buildNamespaceKey(value);
  return { olds: [item], target, mode: item, plan };
}
