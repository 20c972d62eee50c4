import { drawTable } from '../../../visualize/table.js';
import { addExamples, type Definition, onStack } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';
import { stackItem } from '../../stack/stack-item.js';
import { addRegionOptions } from '../../stack/stack-options.js';
import type { StackAction } from '../../stack/stack-session.js';
import type { StackItemShape } from '../../stack/stack-shapes.js';
import type { Style } from '../../terminal/terminal.js';
import type { ListShape } from '../../run/common-shapes.js';

export const define: Definition = (command, context) => {
  addRegionOptions(addExamples(command, ['list', 'list --region eu-west-1 --json'])).action(
    onStack(context, listStacksOf),
  );
};

const listStacksOf: StackAction = async ({ tools }): Promise<Result<ListShape<StackItemShape>>> => {
  const { listStacks } = await import('../../../infra/stack/status/inspect-stack.js');
  const [region, stacks] = await Promise.all([tools.cloudformation.region(), listStacks(tools)]);
  const data = { items: stacks.map(stackItem), next: null };
  return { data, text: (style) => render(data.items, region, style) };
};

function render(items: readonly StackItemShape[], region: string, { width }: Style): string {
  if (items.length === 0) return `No stacks of Headgate in ${region}.`;
  const rows = items.map(({ stack, env, status, version, table }) => [
    stack,
    env ?? '-',
    status,
    version ?? '-',
    table ?? '-',
  ]);
  return drawTable(['STACK', 'ENV', 'STATUS', 'VERSION', 'TABLE'], rows, width);
}
