import type { ResourceChange } from '../../infra/stack/stack-tools.js';
import { isTagOnly } from '../../infra/stack/change-set/change-set.js';
import type { DeployRequest } from '../../infra/stack/deploy-stack.js';
import { renderChanges } from './render-changes.js';
import type { StackSession } from './stack-session.js';

/** The options of `deploy` and `upgrade`. */
export interface ChangeOptions {
  readonly param?: readonly string[];
  readonly allowReplacement?: boolean;
  readonly dryRun?: boolean;
}

/** The request of `deploy` and `upgrade`. Refuses bad input before any question is asked. */
export async function buildRequest(
  { names, version, confirm, show, style }: StackSession,
  { param = [], allowReplacement = false, dryRun = false }: ChangeOptions,
): Promise<DeployRequest> {
  const [{ parseParameters }, { readBundles }, { buildTemplate }] = await Promise.all([
    import('../../infra/stack/change-set/change-set.js'),
    import('../../infra/stack/upload-code.js'),
    import('../../infra/template.js'),
  ]);
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
      // Creating a stack and changing tags affect nothing that is in use.
      if (action === 'update' && !changes.every(isTagOnly))
        await confirm(`changes ${countOf(changes)} of stack ${names.stack}`);
    },
  };
}

function countOf({ length }: readonly ResourceChange[]): string {
  return length === 1 ? '1 resource' : `${length} resources`;
}
