import { InfrastructureError } from '../../core/errors.js';
import { PARAMETERS, RESOURCES } from '../template/names.js';
import { parameters } from '../template/parameters.js';
import { buildImportRequest } from './change-set/change-set.js';
import type { ResourceChange, Stack, StackTools, Watcher } from './stack-tools.js';
import { buildImportTemplate, differencesOf, type TableFacts } from './table/table-facts.js';
import { runChangeSet, untilIdle } from './change-set/run-change-set.js';
import type { StackNames } from './stack-name.js';
import { isEmptyShell } from './status/stack-status.js';
import { refuseVersion } from './table/stack-table.js';

export interface AdoptRequest {
  readonly names: StackNames;
  /** The version of this package. */
  readonly version: string;
  readonly given: Readonly<Record<string, string>>;
  readonly dryRun: boolean;
  /** Throws to stop before any change. `settings` lists what the update after the import will change on the table. */
  readonly confirmAdoption: (changes: readonly ResourceChange[], settings: readonly string[]) => Promise<void>;
}

export interface Adoption {
  /** null: the stack has its table already. */
  readonly changes: readonly ResourceChange[] | null;
  /** What the update after the import changes on the table: `PointInTimeRecovery: false -> true`. */
  readonly settings: readonly string[];
}

/**
 * Imports an existing table into the stack, and nothing else: the stack then consists of the table, and the next update
 * adds the rest. Does nothing when the stack already has its table. All checks run before the first change.
 */
export async function adoptTable(tools: StackTools, watcher: Watcher, request: AdoptRequest): Promise<Adoption> {
  const { names, given, dryRun } = request;
  const before = await untilIdle(tools, watcher, names);
  if (before !== null && (await hasTable(tools, before))) return { changes: null, settings: [] };
  watcher.onStep(`looking at table ${names.table}`);
  const facts = await tools.tables.readFacts(names.table);
  if (facts === null) {
    const where = await tools.cloudformation.region();
    const message = `There is no table ${names.table} in ${where}: headgate deploy${names.flag} without --adopt creates one`;
    throw new InfrastructureError('infrastructure.table-missing', message);
  }
  refuseDifferences(facts, differencesOf(facts, given));
  const migrate = `headgate migrate --store dynamodb://${names.table}`;
  refuseVersion(names.table, await tools.tables.readVersion(names.table), migrate);
  const settings = settingsAhead(facts, given);
  const { changes } = await runChangeSet(tools, watcher, {
    names,
    before,
    dryRun,
    request: buildImportRequest(request, buildImportTemplate(facts), before, tools.newId()),
    allow: async (found) => request.confirmAdoption(found, settings),
  });
  return { changes: changes ?? [], settings };
}

async function hasTable({ cloudformation }: StackTools, stack: Stack): Promise<boolean> {
  if (isEmptyShell(stack)) return false;
  return RESOURCES.table in (await cloudformation.readResources(stack.name));
}

function refuseDifferences({ name }: TableFacts, differences: readonly string[]): void {
  if (differences.length === 0) return;
  const message = `Table ${name} cannot be adopted as it is: ${differences.join('; ')}`;
  throw new InfrastructureError('infrastructure.table-differs', message);
}

function settingsAhead(facts: TableFacts, given: Readonly<Record<string, string>>): readonly string[] {
  const now: Readonly<Record<string, string>> = {
    [PARAMETERS.pointInTimeRecovery]: String(facts.pointInTimeRecovery),
    [PARAMETERS.deletionProtection]: String(facts.deletionProtection),
    [PARAMETERS.kmsKeyArn]: facts.kmsKeyArn ?? '',
  };
  const known = parameters();
  return Object.entries(now).flatMap(([name, value]) => {
    const wanted = given[name] ?? String(known[name]?.Default);
    return wanted === value ? [] : [`${name}: ${value === '' ? 'none' : value} -> ${wanted === '' ? 'none' : wanted}`];
  });
}
