import type { TableReadiness } from '../../backends/dynamodb/schema/prepare-table.js';
import { InfrastructureError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { type AdoptRequest, adoptTable } from './adopt-table.js';
import { buildChangeSetRequest, dataLosses } from './change-set/change-set.js';
import { runChangeSet, untilIdle } from './change-set/run-change-set.js';
import type { StackNames } from './stack-name.js';
import { isEmptyShell } from './status/stack-status.js';
import { requireNoTable, requireVersion, tableOfStack } from './table/stack-table.js';
import type { ResourceChange, Stack, StackTools, Watcher } from './stack-tools.js';
import { type Bundle, uploadCode, type UploadedFunction } from './upload-code.js';

export interface DeployRequest extends Omit<TemplateRequest, 'check'> {
  readonly bundles: readonly Bundle[];
}

export interface StackDeployRequest extends DeployRequest {
  /** Asks before an existing table is imported into the stack; null: do not adopt a table. */
  readonly confirmAdoption: AdoptRequest['confirmAdoption'] | null;
}

export interface Deployed extends Omit<TemplateOutcome, 'action'> {
  /** `adopt`: an existing table was imported into the stack. */
  readonly action: TemplateOutcome['action'] | 'adopt';
  /** The settings of the table that the adoption changes. */
  readonly settings: readonly string[];
  /** Empty in a dry run that would create the stack. */
  readonly functions: readonly UploadedFunction[];
  /** null: a dry run. */
  readonly table: TableReadiness | null;
}

/**
 * Creates or updates a stack, prepares its table and uploads the code. Each step first reads the current state, so a
 * run after one that was killed continues where that one stopped.
 */
export async function deployStack(tools: StackTools, watcher: Watcher, request: StackDeployRequest): Promise<Deployed> {
  const { dryRun, bundles, names, confirmAdoption } = request;
  const adopted =
    confirmAdoption === null
      ? { changes: null, settings: [] }
      : await adoptTable(tools, watcher, { ...request, confirmAdoption });
  const { changes: imported, settings } = adopted;
  // The other changes of the template are known only after the import.
  if (imported !== null && dryRun) {
    return { action: 'adopt', changes: imported, settings, stack: null, functions: [], table: null };
  }
  const applied = await applyTemplate(tools, watcher, {
    ...request,
    // The user confirmed the adoption. Everything besides the table is new, so it is confirmed as a creation.
    confirm: async (action, changes) => request.confirm(imported === null ? action : 'create', changes),
    check: async (stack) => {
      if (stack === null || isEmptyShell(stack)) await requireNoTable(tools, names.table);
      else await requireVersion(tools, stack, `headgate upgrade${names.flag}`);
    },
  });
  const outcome =
    imported === null
      ? { ...applied, settings }
      : { action: 'adopt' as const, changes: [...imported, ...applied.changes], stack: applied.stack, settings };
  const { stack } = outcome;
  if (stack === null || (dryRun && outcome.action === 'create')) return { ...outcome, functions: [], table: null };
  const resources = await tools.cloudformation.readResources(names.stack);
  const tableName = tableOfStack(stack, resources);
  watcher.onStep(`preparing table ${tableName}`);
  const table = dryRun ? null : await tools.tables.prepare(tableName);
  const functions = await uploadCode(tools, watcher, { resources, bundles, dryRun });
  return { ...outcome, functions, table };
}

export interface TemplateRequest {
  readonly names: StackNames;
  readonly template: Template;
  /** The version of this package. */
  readonly version: string;
  /** Parameters to set. Other parameters of an existing stack keep their values. */
  readonly given: Readonly<Record<string, string>>;
  readonly dryRun: boolean;
  /** Allows a table or an archive to be replaced or removed. */
  readonly allowReplacement: boolean;
  /** Throws when the stack must not be changed. null: there is no stack. */
  readonly check: (stack: Stack | null) => Promise<void>;
  /** Throws to stop before any change. */
  readonly confirm: (action: 'create' | 'update', changes: readonly ResourceChange[]) => Promise<void>;
}

export interface TemplateOutcome {
  readonly action: 'create' | 'update' | 'none';
  readonly changes: readonly ResourceChange[];
  /** The stack after the run; null: there is none, because this was a dry run. */
  readonly stack: Stack | null;
}

/** Brings a stack to the template through a change set. A dry run reports the changes and makes none. */
export async function applyTemplate(
  tools: StackTools,
  watcher: Watcher,
  request: TemplateRequest,
): Promise<TemplateOutcome> {
  const { names, dryRun } = request;
  const before = await untilIdle(tools, watcher, names);
  const action = before === null || isEmptyShell(before) ? 'create' : 'update';
  await request.check(before);
  watcher.onStep(`comparing stack ${names.stack} with the template`);
  const { changes, stack } = await runChangeSet(tools, watcher, {
    names,
    before,
    dryRun,
    request: buildChangeSetRequest(request, before, tools.newId()),
    allow: async (found) => allow(request, action, found),
  });
  return changes === null ? { action: 'none', changes: [], stack } : { action, changes, stack };
}

async function allow(
  { allowReplacement, confirm }: TemplateRequest,
  action: 'create' | 'update',
  changes: readonly ResourceChange[],
): Promise<void> {
  const losses = allowReplacement ? [] : dataLosses(changes);
  if (losses.length === 0) return confirm(action, changes);
  const named = losses.map(({ logicalId, physicalId, action: what }) => {
    const how = what === 'Remove' ? 'removed' : 'replaced';
    return `${logicalId} (${physicalId ?? 'not created yet'}) would be ${how}`;
  });
  const message = `${named.join(', ')}, and the stack would lose access to its data: --allow-replacement permits it`;
  throw new InfrastructureError('infrastructure.data-loss', message);
}
