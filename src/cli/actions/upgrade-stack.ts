import { upgradeStack } from '../../infra/stack/upgrade-stack.js';
import { formatCount } from '../../visualize/format.js';
import type { GlobalOptions } from '../global-options.js';
import { renderUpgraded } from '../render/stack.js';
import type { Result } from '../result.js';
import type { UpgradeShape } from '../stack-shapes.js';
import type { StackAction } from '../stack-session.js';
import { buildRequest, changeShape, type ChangeOptions } from './deploy-stack.js';

const SOME_LEFT_EXIT = 1;

export const upgrade: StackAction<ChangeOptions & GlobalOptions> = async (
  session,
  options,
): Promise<Result<UpgradeShape>> => {
  const { names, tools, watcher, progress } = session;
  const {
    template,
    data: migrated,
    functions,
  } = await upgradeStack(tools, watcher, {
    ...buildRequest(session, options),
    confirmMigration:
      options.yes === true
        ? null
        : async ({ migrations }) => {
            const found = migrations.reduce((sum, migration) => sum + migration.found, 0);
            await session.confirm(`moves ${formatCount(found)} old records of stack ${names.stack} and removes them`);
          },
    onMigration: ({ migration, done, total }) =>
      progress(`${migration}: ${done}${total === null ? '' : ` of ${total}`} records`),
  });
  const { dryRun: _, ...shown } = migrated;
  const data: UpgradeShape = {
    stack: names.stack,
    dryRun: options.dryRun ?? false,
    template: {
      action: template.action,
      status: template.stack?.status ?? null,
      changes: template.changes.map(changeShape),
    },
    data: shown,
    functions,
  };
  const left = migrated.migrations.some((migration) => migration.left > 0);
  return { data, text: (style) => renderUpgraded(data, style), exitCode: left ? SOME_LEFT_EXIT : 0 };
};
