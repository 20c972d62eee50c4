import { InfrastructureError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { dataLosses } from './change-set.js';
import type { Change, Stack } from './cloudformation.js';
import { buildChangeSetRequest } from './change-set-request.js';
import { runChangeSet, untilIdle } from './run-change-set.js';
import type { StackNames } from './stack-name.js';
import { isEmptyShell } from './stack-status.js';
import type { StackTools, Watcher } from './stack-tools.js';

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
  readonly confirm: (action: 'create' | 'update', changes: readonly Change[]) => Promise<void>;
}

export interface TemplateOutcome {
  readonly action: 'create' | 'update' | 'none';
  readonly changes: readonly Change[];
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
  changes: readonly Change[],
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
