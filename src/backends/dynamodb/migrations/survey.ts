import { readKey } from '../table/attributes.js';
import { NAMESPACE_ID_PREFIX, NAMESPACE_PREFIX, REGISTRY } from '../table/keys.js';
import { NAMESPACE_ID } from '../table/records.js';
import type { Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import type { ConversionContext } from './convert/build-conversions.js';
import { DisabledLevels } from './legacy/disabled-levels.js';
import { gatherConversions, inWaves } from './convert/gather-conversions.js';
import type { TargetNamespaces } from './legacy/target-namespaces.js';
import type { LegacyKey } from './legacy/legacy-key.js';
import { readOldRecord, TELLING_ATTRIBUTES } from './legacy/old-record.js';
import { treatUnits } from './phases.js';
import { migrationOf } from './registry.js';
import { scanGroups, scanTable } from './scan.js';
import { type OldSetting, settingsOf } from './legacy/settings.js';
import { addTally, NOTHING, type Tally } from './tally.js';
import type { Migration } from './convert/conversion.js';

/** What the whole table shows before anything is written. */
export interface Survey {
  /** How many old records there are of each kind in each namespace. */
  readonly counts: readonly { readonly key: Pick<LegacyKey, 'ns' | 'kind'>; readonly records: number }[];
  /** Ids of namespaces in keys of old records that no row of the registry has. */
  readonly literals: ReadonlySet<string>;
  /** Whether there are records without a namespace. */
  readonly homeless: boolean;
  /** Partition keys of version records of old clients. */
  readonly versions: readonly string[];
  /** Records with settings that this version does not have, by setting. */
  readonly settings: ReadonlyMap<OldSetting, number>;
  readonly disabled: DisabledLevels;
}

/** Reads the whole table once. */
export async function surveyTable(table: Table, signal?: AbortSignal): Promise<Survey> {
  const counts = new Map<string, { key: LegacyKey; records: number }>();
  const registered = new Set<string>([REGISTRY]);
  const versions: string[] = [];
  const settings = new Map<OldSetting, number>();
  const disabled = new DisabledLevels();
  let homeless = false;
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
      homeless ||= ns === null;
      const count = counts.get(`${ns}\n${kind}`) ?? { key: record.key, records: 0 };
      counts.set(`${ns}\n${kind}`, { ...count, records: count.records + 1 });
    }
  }
  const used = [...counts.values()].flatMap(({ key }) => key.ns ?? []);
  const literals = new Set(used.filter((ns) => !registered.has(ns)));
  return { counts: [...counts.values()], literals, homeless, versions, settings, disabled };
}

/** A namespace is registered if a row of the registry names its id, whatever has become of it since. */
function registeredIds(item: Item): readonly string[] {
  const { PK, SK } = readKey(item);
  if (PK !== `${REGISTRY}/SYSTEM#`) return [];
  if (SK.startsWith(NAMESPACE_ID_PREFIX)) return [SK.slice(NAMESPACE_ID_PREFIX.length)];
  return SK.startsWith(NAMESPACE_PREFIX) ? [item[NAMESPACE_ID]?.S ?? ''] : [];
}

/** Old records of each migration, by its id, as the survey saw them. */
export function foundBy({ counts }: Survey, homes: TargetNamespaces): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const { key, records } of counts) {
    const id = migrationOf(key, homes)?.id;
    if (id !== undefined) found.set(id, (found.get(id) ?? 0) + records);
  }
  return found;
}

/** The same, as they are now. */
export async function countOld(
  table: Table,
  homes: TargetNamespaces,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for await (const { items } of scanTable(table, { attributes: TELLING_ATTRIBUTES }, undefined, signal)) {
    for (const item of items) {
      const record = readOldRecord(item);
      const id = record === null ? undefined : migrationOf(record.key, homes)?.id;
      if (id !== undefined) found.set(id, (found.get(id) ?? 0) + 1);
    }
  }
  return found;
}

/** What a migration would meet: reads only, and plans all that it would write. */
export async function rehearse(
  table: Table,
  migration: Migration,
  around: ConversionContext,
  signal?: AbortSignal,
): Promise<Tally> {
  const claims: Parameters<typeof scanGroups>[3] = ({ key }) => migration.claims(key, around.homes);
  let tally = NOTHING;
  for await (const { groups } of scanGroups(table, migration.filter, undefined, claims, signal)) {
    const { units, postponed } = await gatherConversions(table, around, groups, signal);
    tally = addTally(tally, { ...NOTHING, seen: postponed });
    const looking = { table, phase: 'look', around, sequences: new Map<string, number>(), signal } as const;
    for (const wave of inWaves(units)) tally = addTally(tally, await treatUnits(looking, wave));
  }
  return tally;
}
