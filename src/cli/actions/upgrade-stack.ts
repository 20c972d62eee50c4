import { upgradeStack } from '../../infra/stack/upgrade-stack.js';
import { renderUpgraded } from '../render/stack.js';
import type { Result } from '../result.js';
import type { UpgradeShape } from '../shapes.js';
import type { StackAction } from '../stack-session.js';
import { buildRequest, type ChangeOptions } from './deploy-stack.js';

export const upgrade: StackAction<ChangeOptions> = async (session, options): Promise<Result<UpgradeShape>> => {
  const { names, tools, watcher, progress } = session;
  const {
    template,
    data: migrated,
    functions,
  } = await upgradeStack(tools, watcher, {
    ...buildRequest(session, options),
    onMigration: ({ migration, done, total }) =>
      progress(`${migration}: ${done}${total === null ? '' : ` of ${total}`} records`),
  });
  const data: UpgradeShape = {
    stack: names.stack,
    dryRun: options.dryRun ?? false,
    template: { action: template.action, status: template.stack?.status ?? null, changes: template.changes },
    data: { from: migrated.from, to: migrated.to, migrations: migrated.migrations },
    functions,
  };
  return { data, text: (style) => renderUpgraded(data, style) };
};
