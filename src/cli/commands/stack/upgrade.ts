import { addExamples, type Definition, onStack } from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';
import type { Result } from '../../run/result.js';
import { buildRequest, type ChangeOptions } from '../../stack/change-request.js';
import { changeShape, DONE, DRY_RUN, renderChanges, uploadLines, WOULD } from '../../stack/render-changes.js';
import { addChangeOptions } from '../../stack/stack-options.js';
import type { StackAction } from '../../stack/stack-session.js';
import type { UpgradeShape } from '../../stack/stack-shapes.js';
import type { Style } from '../../terminal/terminal.js';
import { describeMigration, exitCodeOf, renderMigration } from '../maintain/migrate.js';

export const define: Definition = (command, context) => {
  addChangeOptions(addExamples(command, ['upgrade --env pre --dry-run', 'upgrade --env pre'])).action(
    onStack(context, upgrade),
  );
};

const upgrade: StackAction<ChangeOptions & GlobalOptions> = async (session, options): Promise<Result<UpgradeShape>> => {
  const { names, tools, watcher, progress } = session;
  const { upgradeStack } = await import('../../../infra/stack/upgrade-stack.js');
  const {
    template,
    data: migrated,
    functions,
  } = await upgradeStack(tools, watcher, {
    ...(await buildRequest(session, options)),
    confirmMigration:
      options.yes === true
        ? null
        : async (ahead) =>
            session.confirm(describeMigration(`stack ${names.stack}`, ahead), 'the data was not changed'),
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
  return { data, text: (style) => render(data, style), exitCode: exitCodeOf(migrated) };
};

function render(data: UpgradeShape, style: Style): string {
  const { template, data: migrated, dryRun } = data;
  const changes = dryRun && template.action !== 'none' ? [renderChanges(template.changes, style)] : [];
  return [
    `${style.green(dryRun ? 'to upgrade' : 'upgraded')}: stack ${data.stack}`,
    `template ${dryRun ? WOULD[template.action] : DONE[template.action]}`,
    ...changes,
    renderMigration({ ...migrated, dryRun }, style),
    ...uploadLines(data.functions, dryRun),
    ...(dryRun ? [DRY_RUN] : []),
  ].join('\n');
}
