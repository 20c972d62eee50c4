import type { TableReadiness } from '../../backends/dynamodb/table/prepare-table.js';
import { adoptTable, type AdoptRequest } from './adopt-table.js';
import { applyTemplate, type TemplateOutcome, type TemplateRequest } from './apply-template.js';
import type { Bundle } from './read-bundles.js';
import { isEmptyShell } from './stack-status.js';
import { requireNoTable, requireVersion, tableNameOf } from './stack-table.js';
import type { StackTools, Watcher } from './stack-tools.js';
import { uploadCode, type UploadedFunction } from './upload-code.js';

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
  const tableName = tableNameOf(stack, resources);
  watcher.onStep(`preparing table ${tableName}`);
  const table = dryRun ? null : await tools.tables.prepare(tableName);
  const functions = await uploadCode(tools, watcher, { resources, bundles, dryRun });
  return { ...outcome, functions, table };
}
