import { addExamples, type Definition, onStack } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';
import { DRY_RUN } from '../../stack/render-changes.js';
import { addNameOptions } from '../../stack/stack-options.js';
import type { StackAction } from '../../stack/stack-session.js';
import type { StackDeletedShape } from '../../stack/stack-shapes.js';
import type { Style } from '../../terminal/terminal.js';

export const define: Definition = (command, context) => {
  addNameOptions(addExamples(command, ['delete --env pre', 'delete --env pre --dry-run']))
    .option('--dry-run', 'show what would stay, and delete nothing')
    .action(onStack(context, deleteStackOf));
};

const deleteStackOf: StackAction<{ readonly dryRun?: boolean }> = async (
  { tools, watcher, names, confirmByName },
  { dryRun = false },
): Promise<Result<StackDeletedShape>> => {
  const { deleteStack } = await import('../../../infra/stack/delete-stack.js');
  const { deleted, kept } = await deleteStack(tools, watcher, {
    names,
    dryRun,
    confirm: async (stack, retained) => {
      const stays =
        retained.length === 0
          ? 'nothing of it stays'
          : `${retained.map(({ logicalId, physicalId }) => `${logicalId} (${physicalId})`).join(', ')} stay`;
      await confirmByName(`deletes stack ${stack.name} with its functions and alarms; ${stays}`, stack.name);
    },
  });
  const data: StackDeletedShape = { stack: names.stack, dryRun, deleted, kept };
  return { data, text: (style) => render(data, style) };
};

function render({ stack, dryRun, deleted, kept }: StackDeletedShape, style: Style): string {
  if (!deleted) return `There is no stack ${stack}: nothing to delete.`;
  const stays = kept.map(({ logicalId, physicalId }) => `  ${logicalId} (${physicalId})`);
  const head = dryRun ? `to delete: stack ${stack}` : `${style.green('deleted')}: stack ${stack}`;
  return [
    head,
    ...(stays.length === 0 ? ['Nothing of it stays.'] : ['What stays:', ...stays]),
    ...(dryRun ? [DRY_RUN] : []),
  ].join('\n');
}
