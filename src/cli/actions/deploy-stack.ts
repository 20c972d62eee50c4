import type { Change } from '../../infra/stack/cloudformation.js';
import { deployStack, type DeployRequest } from '../../infra/stack/deploy-stack.js';
import { parseParameters } from '../../infra/stack/parameters.js';
import { readBundles } from '../../infra/stack/read-bundles.js';
import { buildTemplate } from '../../infra/template.js';
import { renderChanges, renderDeployed } from '../render/stack.js';
import type { Result } from '../result.js';
import type { DeployShape } from '../stack-shapes.js';
import type { StackAction, StackSession } from '../stack-session.js';

export interface ChangeOptions {
  readonly param?: readonly string[];
  readonly allowReplacement?: boolean;
  readonly dryRun?: boolean;
}

export const deploy: StackAction<ChangeOptions> = async (session, options): Promise<Result<DeployShape>> => {
  const { names, tools, watcher } = session;
  const { dryRun = false } = options;
  const { action, changes, stack, functions, table } = await deployStack(
    tools,
    watcher,
    buildRequest(session, options),
  );
  const data: DeployShape = {
    stack: names.stack,
    dryRun,
    action,
    status: stack?.status ?? null,
    changes,
    outputs: stack?.outputs ?? {},
    functions,
    table: table === null ? null : { name: table.name, prepared: table.written },
  };
  return { data, text: (style) => renderDeployed(data, style) };
};

/** What `deploy` and `upgrade` want of a stack. Bad input is refused here, before anything is asked. */
export function buildRequest(
  { names, version, confirm, show }: StackSession,
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
      show(renderChanges(changes));
      // A stack that is new takes nothing from anybody.
      if (action === 'update') await confirm(`changes ${countOf(changes)} of stack ${names.stack}`);
    },
  };
}

function countOf({ length }: readonly Change[]): string {
  return length === 1 ? '1 resource' : `${length} resources`;
}
