import { deleteStack } from '../../infra/stack/delete-stack.js';
import { renderStackDeleted } from '../render/stack.js';
import type { Result } from '../result.js';
import type { StackDeletedShape } from '../stack-shapes.js';
import type { StackAction } from '../stack-session.js';

export const deleteStackAction: StackAction<{ readonly dryRun?: boolean }> = async (
  { tools, watcher, names, confirmByName },
  { dryRun = false },
): Promise<Result<StackDeletedShape>> => {
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
  return { data, text: (style) => renderStackDeleted(data, style) };
};
