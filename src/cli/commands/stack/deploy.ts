import type { StackDeployRequest } from '../../../infra/stack/deploy-stack.js';
import { drawFields } from '../../../visualize/table.js';
import { addExamples, type Definition, onStack } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';
import { buildRequest, type ChangeOptions } from '../../stack/change-request.js';
import { changeShape, DONE, DRY_RUN, renderChanges, uploadLines, WOULD } from '../../stack/render-changes.js';
import { addChangeOptions } from '../../stack/stack-options.js';
import type { StackAction, StackSession } from '../../stack/stack-session.js';
import type { DeployShape } from '../../stack/stack-shapes.js';
import type { Style } from '../../terminal/terminal.js';

export const define: Definition = (command, context) => {
  addChangeOptions(
    addExamples(command, [
      'deploy --env pre',
      'deploy --env prod --param AlarmEmail=ops@example.com',
      'deploy --env prod --dry-run',
      'deploy --table limits --adopt',
    ]),
  )
    .option('--adopt', 'put an existing table under the stack: of createTable, of migrate, or of a deleted stack')
    .action(onStack(context, deploy));
};

interface DeployOptions extends ChangeOptions {
  readonly adopt?: boolean;
}

const deploy: StackAction<DeployOptions> = async (session, options): Promise<Result<DeployShape>> => {
  const { names, tools, watcher } = session;
  const { dryRun = false, adopt = false } = options;
  const { deployStack } = await import('../../../infra/stack/deploy-stack.js');
  const { action, changes, settings, stack, functions, table } = await deployStack(tools, watcher, {
    ...(await buildRequest(session, options)),
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
  return { data, text: (style) => render(data, settings, style) };
};

function confirmAdoption({ names, show, confirm, style }: StackSession): StackDeployRequest['confirmAdoption'] {
  return async (changes, settings) => {
    show([renderChanges(changes, style), ...settings].join('\n'));
    await confirm(`puts table ${names.table} under stack ${names.stack}, and adds functions, alarms and policies`);
  };
}

const REST = 'Then the rest of the template is added: functions, alarms, policies, archive.';

/** `settings` are the settings of the table that an adoption changes. */
function render(data: DeployShape, settings: readonly string[], style: Style): string {
  if (data.dryRun) {
    const head = `${WOULD[data.action]}: stack ${data.stack}`;
    const rest = data.action === 'adopt' ? [...settings, REST] : [];
    return [head, renderChanges(data.changes, style), ...rest, ...uploadLines(data.functions, true), DRY_RUN].join(
      '\n',
    );
  }
  const table = data.table === null ? [] : [tableLine(data.table)];
  return [
    `${style.green(DONE[data.action])}: stack ${data.stack} (${data.status ?? ''})`,
    ...settings,
    ...table,
    ...uploadLines(data.functions, false),
    ...outputLines(data.outputs),
  ].join('\n');
}

function tableLine({ name, prepared }: { readonly name: string; readonly prepared: boolean }): string {
  return prepared
    ? `table ${name} is ready: version record written, namespace default registered`
    : `table ${name} was ready`;
}

function outputLines(outputs: Readonly<Record<string, string>>): readonly string[] {
  const entries = Object.entries(outputs).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? [] : ['', drawFields(entries)];
}
