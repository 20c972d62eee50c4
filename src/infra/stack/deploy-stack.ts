import type { TableReadiness } from '../../backends/dynamodb/prepare-table.js';
import { applyTemplate, type TemplateOutcome, type TemplateRequest } from './apply-template.js';
import type { Bundle } from './read-bundles.js';
import { isEmptyShell } from './stack-status.js';
import { requireNoTable, requireVersion, tableNameOf } from './stack-table.js';
import type { StackTools, Watcher } from './stack-tools.js';
import { uploadCode, type UploadedFunction } from './upload-code.js';

export interface DeployRequest extends Omit<TemplateRequest, 'check'> {
  readonly bundles: readonly Bundle[];
}

export interface Deployed extends TemplateOutcome {
  /** Empty: there are none yet, since this was a dry run. */
  readonly functions: readonly UploadedFunction[];
  /** null: a dry run. */
  readonly table: TableReadiness | null;
}

/**
 * Makes or changes a stack, makes its table ready, uploads the code. Each step begins by looking at what is there, so
 * that a run after one that was killed does the rest.
 */
export async function deployStack(tools: StackTools, watcher: Watcher, request: DeployRequest): Promise<Deployed> {
  const { dryRun, bundles, names } = request;
  const outcome = await applyTemplate(tools, watcher, {
    ...request,
    check: async (stack) => {
      if (stack === null || isEmptyShell(stack)) await requireNoTable(tools, names.table);
      else await requireVersion(tools, stack, `headgate upgrade${names.flag}`);
    },
  });
  const { stack } = outcome;
  if (stack === null || (dryRun && outcome.action === 'create')) return { ...outcome, functions: [], table: null };
  const resources = await tools.cloudformation.readResources(names.stack);
  const tableName = tableNameOf(stack, resources);
  watcher.onStep(`making table ${tableName} ready`);
  const table = dryRun ? null : await tools.tables.prepare(tableName);
  const functions = await uploadCode(tools, watcher, { resources, bundles, dryRun });
  return { ...outcome, functions, table };
}
