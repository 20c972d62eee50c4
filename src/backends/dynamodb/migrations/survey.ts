import { readKey } from '../table/attributes.js';
import { NAMESPACE_ID_PREFIX, NAMESPACE_PREFIX, REGISTRY } from '../table/keys.js';
import { NAMESPACE_ID } from '../table/records.js';
import type { Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import type { ConversionContext } from './convert/conversion.js';
import { DisabledLevels } from './legacy/disabled-levels.js';
import { gatherConversions, inWaves } from './convert/gather-conversions.js';
import type { NamespaceSurvey, TargetNamespaces } from './legacy/target-namespaces.js';
import type { LegacyKey } from '../schema/legacy-key.js';
import { OLD_RECORD_ATTRIBUTES, readOldRecord } from '../schema/old-record.js';
import { runPhase } from './phases.js';
import { type Migration, migrationOf } from './registry.js';
import { scanTable } from '../schema/scan-table.js';
import { scanGroups } from './scan-groups.js';
import { type DroppableSetting, type OldSetting, settingsOf } from './legacy/settings.js';
import { addTally, NOTHING, type Tally } from './tally.js';

/** The state of the whole table before anything is written. */
export interface Survey extends NamespaceSurvey {
  /** The number of old records by kind and namespace. */
  readonly counts: readonly { readonly key: Pick<LegacyKey, 'ns' | 'kind'>; readonly records: number }[];
  /** Partition keys of the version records of old clients. */
  readonly versions: readonly string[];
  /** The number of records by setting that this version does not have. */
  readonly settings: ReadonlyMap<OldSetting, number>;
  readonly disabled: DisabledLevels;
}

/** Reads the whole table once. */
export async function surveyTable(
  table: Table,
  drop: ReadonlySet<DroppableSetting>,
  signal?: AbortSignal,
): Promise<Survey> {
  const counts = new Map<string, { key: LegacyKey; records: number }>();
  const registered = new Set<string>([REGISTRY]);
  const versions: string[] = [];
  const settings = new Map<OldSetting, number>();
  const disabled = new DisabledLevels(drop);
  let hasRecordsWithoutNamespace = false;
  for await (const { items } of scanTable(table, {}, undefined, signal)) {
    for (const item of items) {
      disabled.note(item);
      for (const id of registeredIds(item)) registered.add(id);
      const record = readOldRecord(item);
      if (record === null) continue;
      for (const setting of settingsOf(record)) settings.set(setting, (settings.get(setting) ?? 0) + 1);
      const { ns, kind } = record.key;
      if (kind === 'version' && ns !== REGISTRY) versions.push(readKey(item).PK);
      if (kind === 'version') continue;
      hasRecordsWithoutNamespace ||= ns === null;
      const count = counts.get(`${ns}\n${kind}`) ?? { key: record.key, records: 0 };
      counts.set(`${ns}\n${kind}`, { ...count, records: count.records + 1 });
    }
  }
  const used = [...counts.values()].flatMap(({ key }) => key.ns ?? []);
  const literals = new Set(used.filter((ns) => !registered.has(ns)));
  return { counts: [...counts.values()], literals, hasRecordsWithoutNamespace, versions, settings, disabled };
}

/** A namespace is registered if a record of the registry has its id, whatever its status. */
function registeredIds(item: Item): readonly string[] {
  const { PK, SK } = readKey(item);
  if (PK !== `${REGISTRY}/SYSTEM#`) return [];
  if (SK.startsWith(NAMESPACE_ID_PREFIX)) return [SK.slice(NAMESPACE_ID_PREFIX.length)];
  return SK.startsWith(NAMESPACE_PREFIX) ? [item[NAMESPACE_ID]?.S ?? ''] : [];
}

/** The number of old records of each migration, by its id, at the survey. */
export function foundBy({ counts }: Survey, namespaces: TargetNamespaces): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const { key, records } of counts) {
    const id = migrationOf(key, namespaces)?.id;
    if (id !== undefined) found.set(id, (found.get(id) ?? 0) + records);
  }
  return found;
}

/** The same numbers at the current time. */
export async function countOld(
  table: Table,
  namespaces: TargetNamespaces,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for await (const { items } of scanTable(table, { attributes: OLD_RECORD_ATTRIBUTES }, undefined, signal)) {
    for (const item of items) {
      const record = readOldRecord(item);
      const id = record === null ? undefined : migrationOf(record.key, namespaces)?.id;
      if (id !== undefined) found.set(id, (found.get(id) ?? 0) + 1);
    }
  }
  return found;
}

/** Plans all writes of a migration and makes none. */
export async function rehearse(
  table: Table,
  migration: Migration,
  context: ConversionContext,
  signal?: AbortSignal,
): Promise<Tally> {
  const claims: Parameters<typeof scanGroups>[3] = ({ key }) => migration.claims(key, context.namespaces);
  let tally = NOTHING;
  for await (const { groups } of scanGroups(table, migration.filter, undefined, claims, signal)) {
    const { conversions, postponed } = await gatherConversions(table, context, groups, signal);
    tally = addTally(tally, { ...NOTHING, seen: postponed });
    const looking = { table, phase: 'look', context, sequences: new Map<string, number>(), signal } as const;
    for (const wave of inWaves(conversions)) tally = addTally(tally, await runPhase(looking, wave));
  }
  return tally;
}
