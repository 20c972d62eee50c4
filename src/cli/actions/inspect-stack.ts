import type { Stack } from '../../infra/stack/stack-tools.js';
import { inspectStack, listStacks } from '../../infra/stack/inspect-stack.js';
import { readBundles } from '../../infra/stack/upload-code.js';
import { ENV_TAG, hasFailed, VERSION_TAG } from '../../infra/stack/stack-status.js';
import { PARAMETERS } from '../../infra/template/names.js';
import { renderStackList } from '../render/stack.js';
import { renderStatus } from '../render/stack-status.js';
import type { Result } from '../result.js';
import type { ListShape } from '../shapes.js';
import type { StackItemShape, StackStatusShape } from '../stack-shapes.js';
import type { StackAction } from '../stack-session.js';

export const showStack: StackAction = async ({ tools, names, version }): Promise<Result<StackStatusShape>> => {
  const { region, stack, functions, table, lastFailure } = await inspectStack(tools, names, readBundles());
  const data: StackStatusShape = {
    ...itemOf(stack),
    region,
    statusReason: stack.reason,
    thisVersion: version,
    parameters: stack.parameters,
    outputs: stack.outputs,
    tableVersion:
      table === null
        ? null
        : {
            state: table.version.kind,
            schemaVersion: 'schemaVersion' in table.version ? table.version.schemaVersion : null,
          },
    functions,
    lastFailure,
  };
  return { data, text: (style) => renderStatus(data, names.flag, style), exitCode: isBroken(data) ? BROKEN_EXIT : 0 };
};

/** As for every failure of CloudFormation and Lambda. */
const BROKEN_EXIT = 9;

/** Whether anything of the stack failed or is gone. What is only of another version is not broken. */
function isBroken({ status, tableVersion, functions }: StackStatusShape): boolean {
  if (hasFailed(status) || tableVersion?.state === 'no-table') return true;
  return functions.some(({ state, update, code }) => code === 'missing' || state === 'Failed' || update === 'Failed');
}

export const listStacksAction: StackAction = async ({ tools }): Promise<Result<ListShape<StackItemShape>>> => {
  const [region, stacks] = await Promise.all([tools.cloudformation.region(), listStacks(tools)]);
  const data = { items: stacks.map(itemOf), next: null };
  return { data, text: (style) => renderStackList(data.items, region, style) };
};

function itemOf({ name, status, tags, parameters, createdAt, updatedAt }: Stack): StackItemShape {
  return {
    stack: name,
    env: tags[ENV_TAG] ?? null,
    status,
    version: tags[VERSION_TAG] ?? null,
    table: parameters[PARAMETERS.tableName] ?? null,
    createdAt: createdAt?.toISOString() ?? null,
    updatedAt: updatedAt?.toISOString() ?? null,
  };
}
