import { REGISTRY } from '../keys.js';
import type { Table } from '../requests.js';
import { gatherUnits, inWaves } from './gather-units.js';
import { readOldRecord, TELLING_ATTRIBUTES } from './old-record.js';
import { treatUnits } from './phases.js';
import { migrationOf } from './registry.js';
import { scanGroups, scanTable } from './scan.js';
import { addTally, NOTHING, type Tally } from './tally.js';
import type { Migration } from './unit.js';

export interface Survey {
  /** Old records of each migration, by its id. */
  readonly found: ReadonlyMap<string, number>;
  /** Whether there are records without a namespace. */
  readonly homeless: boolean;
  /** Partition keys of version records of old clients. */
  readonly versions: readonly string[];
}

/** Counts the old records of a table. Reads only. */
export async function surveyTable(table: Table, signal?: AbortSignal): Promise<Survey> {
  const found = new Map<string, number>();
  const versions: string[] = [];
  let homeless = false;
  for await (const { items } of scanTable(table, { attributes: TELLING_ATTRIBUTES }, undefined, signal)) {
    for (const item of items) {
      const record = readOldRecord(item);
      if (record === null) continue;
      const id = migrationOf(record)?.id;
      if (id !== undefined) found.set(id, (found.get(id) ?? 0) + 1);
      if (record.key.kind !== 'version') homeless ||= record.key.ns === null;
      else if (record.key.ns !== REGISTRY) versions.push(item['PK']?.S ?? '');
    }
  }
  return { found, homeless, versions };
}

/** What a migration would meet: reads only, and plans all that it would write. */
export async function rehearse(
  table: Table,
  migration: Migration,
  defaultNs: string,
  signal?: AbortSignal,
): Promise<Tally> {
  const around = { migration: migration.id, defaultNs };
  const claims = migration.claims.bind(migration);
  let tally = NOTHING;
  for await (const { groups } of scanGroups(table, migration.filter, undefined, claims, signal)) {
    const { units, postponed } = await gatherUnits(table, around, groups, signal);
    tally = addTally(tally, { ...NOTHING, seen: postponed });
    const looking = { table, phase: 'look', sequences: new Set<string>(), signal } as const;
    for (const wave of inWaves(units)) tally = addTally(tally, await treatUnits(looking, wave));
  }
  return tally;
}
