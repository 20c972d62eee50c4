import { changesTable, type MigrationReport } from '../../backends/dynamodb/migrations/run.js';
import { HeadgateError, isHeadgateError } from '../../core/errors.js';
import { applyTemplate, type DeployRequest, type TemplateOutcome } from './deploy-stack.js';
import type { Stack, StackTools, Watcher } from './stack-tools.js';
import { isEmptyShell } from './status/stack-status.js';
import { missingStack, requireVersion, tableOfStack } from './table/stack-table.js';
import { uploadCode, type UploadedFunction } from './upload-code.js';

export interface UpgradeRequest extends DeployRequest {
  /** Throws to stop before records are migrated or the version is raised; null: do not ask. */
  readonly confirmMigration: ((ahead: MigrationReport) => Promise<void>) | null;
  readonly onMigration: (progress: { migration: string; done: number; total: number | null }) => void;
}

export interface Upgraded {
  readonly template: TemplateOutcome;
  readonly data: MigrationReport;
  readonly functions: readonly UploadedFunction[];
}

/**
 * The order matters: new code must not run on old data, and needs its permissions first. The version is raised last:
 * clients write records that old code would misread as soon as it is raised.
 */
const STEPS = ['template', 'data', 'code', 'version'] as const;
type UpgradeStep = (typeof STEPS)[number];

/** An upgrade failed at a step. Completed steps are kept; running the upgrade again does the rest. */
class UpgradeStopped extends HeadgateError {
  readonly done: readonly UpgradeStep[];
  readonly failed: UpgradeStep;
  readonly notDone: readonly UpgradeStep[];

  /** `cause` is the reason and provides the error code. */
  constructor(cause: HeadgateError, failed: UpgradeStep) {
    const at = STEPS.indexOf(failed);
    const done = STEPS.slice(0, at);
    const notDone = STEPS.slice(at + 1);
    const parts = [
      done.length === 0 ? 'Nothing was upgraded' : `Done: ${done.join(', ')}`,
      `failed: ${failed}`,
      ...(notDone.length === 0 ? [] : [`not begun: ${notDone.join(', ')}`]),
    ];
    super(cause.code, `${parts.join('; ')}. ${cause.message}`, { cause });
    this.done = done;
    this.failed = failed;
    this.notDone = notDone;
  }
}

/** Upgrades a stack to this package: its template, the data in its table, the code of its functions, the version of its table. */
export async function upgradeStack(tools: StackTools, watcher: Watcher, request: UpgradeRequest): Promise<Upgraded> {
  const { names, dryRun, bundles, onMigration, confirmMigration } = request;
  const check = async (stack: Stack | null): Promise<void> => {
    if (stack === null || isEmptyShell(stack)) {
      throw missingStack(names.stack, await tools.cloudformation.region(), names.flag);
    }
    await requireVersion(tools, stack, null);
  };
  const template = await step('template', async () => applyTemplate(tools, watcher, { ...request, check }));
  const stack = template.stack as Stack;
  const resources = await tools.cloudformation.readResources(names.stack);
  const tableName = tableOfStack(stack, resources);
  const data = await step('data', async () => {
    watcher.onStep(`migrating table ${tableName}`);
    const { kind } = await tools.tables.readVersion(tableName);
    // A deployment was killed before it prepared the new table. There is nothing to migrate.
    if (kind === 'no-record' && !dryRun) await tools.tables.prepare(tableName);
    if (!dryRun && confirmMigration !== null) {
      const ahead = await tools.tables.migrate({ tableName, dryRun: true });
      if (changesTable(ahead)) await confirmMigration(ahead);
    }
    return tools.tables.migrate({ tableName, dryRun, raise: false, onProgress: onMigration });
  });
  const functions = await step('code', async () => uploadCode(tools, watcher, { resources, bundles, dryRun }));
  const raised = await step('version', async () => !dryRun && tools.tables.raise(tableName));
  return { template, data: raised ? { ...data, to: data.raisesTo ?? data.to } : data, functions };
}

/**
 * Errors that occur before the first change, for example a change that was not confirmed. Their message needs no list
 * of steps.
 */
const BEFORE_IT_BEGAN = new Set<string>(['input.invalid', 'infrastructure.stack-missing', 'schema.mismatch']);

async function step<T>(name: UpgradeStep, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isHeadgateError(error)) throw error;
    throw name === 'template' && BEFORE_IT_BEGAN.has(error.code) ? error : new UpgradeStopped(error, name);
  }
}
