import type { Table } from '../requests.js';
import { gatherUnits } from './gather-units.js';
import { readOldRecord } from './old-record.js';
import { treatUnits } from './phases.js';
import { MIGRATIONS, migrationOf } from './registry.js';
import { scanGroups, scanSegment, SEGMENTS } from './scan.js';
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
  const look = async (segment: number): Promise<void> => {
    for await (const { items } of scanSegment(table, segment, undefined, signal)) {
      for (const item of items) {
        const record = readOldRecord(item);
        if (record === null) continue;
        const id = migrationOf(record)?.id;
        if (id !== undefined) found.set(id, (found.get(id) ?? 0) + 1);
        if (record.key.kind !== 'version') homeless ||= record.key.ns === null;
        else if (record.key.ns !== '_') versions.push(item['PK']?.S ?? '');
      }
    }
  };
  await Promise.all(Array.from({ length: SEGMENTS }, async (_, segment) => look(segment)));
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
  const one = async (segment: number): Promise<Tally> => {
    let tally = NOTHING;
    for await (const { groups } of scanGroups(table, segment, undefined, claims, signal)) {
      const units = await gatherUnits(table, around, groups, signal);
      tally = addTally(tally, await treatUnits({ table, phase: 'look', sequences: new Set(), signal }, units));
    }
    return tally;
  };
  const tallies = await Promise.all(Array.from({ length: SEGMENTS }, async (_, segment) => one(segment)));
  return tallies.reduce(addTally, NOTHING);
}

/** Migrations that there is something to do for, in their order. */
export function pending({ found }: Survey): readonly Migration[] {
  return MIGRATIONS.filter(({ id }) => (found.get(id) ?? 0) > 0);
}
