import type { Change } from '../../infra/stack/stack-tools.js';
import { isTagOnly, parseParameters } from '../../infra/stack/change-set.js';
import { type DeployRequest, deployStack, type StackDeployRequest } from '../../infra/stack/deploy-stack.js';
import { readBundles } from '../../infra/stack/upload-code.js';
import { buildTemplate } from '../../infra/template.js';
import { renderChanges, renderDeployed } from '../render/stack.js';
import type { Result } from '../result.js';
import type { DeployShape, StackChangeShape } from '../stack-shapes.js';
import type { StackAction, StackSession } from '../stack-session.js';

export interface ChangeOptions {
  readonly param?: readonly string[];
  readonly allowReplacement?: boolean;
  readonly dryRun?: boolean;
}

interface DeployOptions extends ChangeOptions {
  readonly adopt?: boolean;
}

export const deploy: StackAction<DeployOptions> = async (session, options): Promise<Result<DeployShape>> => {
  const { names, tools, watcher } = session;
  const { dryRun = false, adopt = false } = options;
  const { action, changes, settings, stack, functions, table } = await deployStack(tools, watcher, {
    ...buildRequest(session, options),
    confirmAdoption: adopt ? confirmAdoption(session) : null,
  });
  const data: DeployShape = {
    stack: names.stack,
    dryRun,
    action,
    status: stack?.status ?? null,
    changes: changes.map(changeShape),
    outputs: stack?.outputs ?? {},
    functions,
    table: table === null ? null : { name: table.name, prepared: table.written },
  };
  return { data, text: (style) => renderDeployed(data, settings, style) };
};

function confirmAdoption({ names, show, confirm, style }: StackSession): StackDeployRequest['confirmAdoption'] {
  return async (changes, settings) => {
    show([renderChanges(changes, style), ...settings].join('\n'));
    await confirm(`puts table ${names.table} under stack ${names.stack}, and adds functions, alarms and policies`);
  };
}

/** What `--json` shows of a change. */
export function changeShape({ action, logicalId, physicalId, type, replacement }: Change): StackChangeShape {
  return { action, logicalId, physicalId, type, replacement };
}

/** What `deploy` and `upgrade` want of a stack. Bad input is refused here, before anything is asked. */
export function buildRequest(
  { names, version, confirm, show, style }: StackSession,
  { param = [], allowReplacement = false, dryRun = false }: ChangeOptions,
): DeployRequest {
  const template = buildTemplate();
  return {
    names,
    template,
    version,
    given: parseParameters(param, template),
    dryRun,
    allowReplacement,
    bundles: readBundles(),
    confirm: async (action, changes) => {
      show(renderChanges(changes, style));
      // A stack that is new takes nothing from anybody, and neither does a tag.
      if (action === 'update' && !changes.every(isTagOnly))
        await confirm(`changes ${countOf(changes)} of stack ${names.stack}`);
    },
  };
}

function countOf({ length }: readonly Change[]): string {
  return length === 1 ? '1 resource' : `${length} resources`;
}
