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
  /** How to ask before a table that exists is put under the stack; null: only a table of its own. */
  readonly confirmAdoption: AdoptRequest['confirmAdoption'] | null;
}

export interface Deployed extends Omit<TemplateOutcome, 'action'> {
  /** `adopt`: a table that existed came under the stack. */
  readonly action: TemplateOutcome['action'] | 'adopt';
  /** What the adoption changes of the table besides. */
  readonly settings: readonly string[];
  /** Empty: there are none yet, since this was a dry run. */
  readonly functions: readonly UploadedFunction[];
  /** null: a dry run. */
  readonly table: TableReadiness | null;
}

/**
 * Makes or changes a stack, makes its table ready, uploads the code. Each step begins by looking at what is there, so
 * that a run after one that was killed does the rest.
 */
export async function deployStack(tools: StackTools, watcher: Watcher, request: StackDeployRequest): Promise<Deployed> {
  const { dryRun, bundles, names, confirmAdoption } = request;
  const adopted =
    confirmAdoption === null
      ? { changes: null, settings: [] }
      : await adoptTable(tools, watcher, { ...request, confirmAdoption });
  const { changes: imported, settings } = adopted;
  // What the rest of the template changes is known only when the stack has its table.
  if (imported !== null && dryRun) {
    return { action: 'adopt', changes: imported, settings, stack: null, functions: [], table: null };
  }
  const applied = await applyTemplate(tools, watcher, {
    ...request,
    // The adoption was agreed to, and what it brings besides the table is new.
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
  watcher.onStep(`making table ${tableName} ready`);
  const table = dryRun ? null : await tools.tables.prepare(tableName);
  const functions = await uploadCode(tools, watcher, { resources, bundles, dryRun });
  return { ...outcome, functions, table };
}
