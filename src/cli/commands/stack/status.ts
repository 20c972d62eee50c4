import { hasFailed } from '../../../infra/stack/status/stack-status.js';
import { formatInstant } from '../../../visualize/format.js';
import { drawFields, drawTable } from '../../../visualize/table.js';
import { addExamples, type Definition, onStack } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';
import { stackItem } from '../../stack/stack-item.js';
import { addNameOptions } from '../../stack/stack-options.js';
import type { StackAction } from '../../stack/stack-session.js';
import type { StackStatusShape } from '../../stack/stack-shapes.js';
import type { Style } from '../../terminal/terminal.js';

export const define: Definition = (command, context) => {
  addNameOptions(addExamples(command, ['status', 'status --env pre --region eu-west-1'])).action(
    onStack(context, showStatus),
  );
};

const showStatus: StackAction = async ({ tools, names, version }): Promise<Result<StackStatusShape>> => {
  const [{ inspectStack }, { readBundles }] = await Promise.all([
    import('../../../infra/stack/status/inspect-stack.js'),
    import('../../../infra/stack/upload-code.js'),
  ]);
  const { region, stack, functions, table, lastFailure } = await inspectStack(tools, names, readBundles());
  const data: StackStatusShape = {
    ...stackItem(stack),
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
  return { data, text: (style) => render(data, names.flag, style), exitCode: isBroken(data) ? BROKEN_EXIT : 0 };
};

/** The exit code of every failure of CloudFormation and Lambda. */
const BROKEN_EXIT = 9;

/** Whether a part of the stack failed or is missing. A part of another version is not broken. */
function isBroken({ status, tableVersion, functions }: StackStatusShape): boolean {
  if (hasFailed(status) || tableVersion?.state === 'no-table') return true;
  return functions.some(({ state, update, code }) => code === 'missing' || state === 'Failed' || update === 'Failed');
}

const TABLE_STATE = {
  current: () => 'ready',
  upgradable: (flag: string) => `ready, without what needs a newer version: headgate upgrade${flag}`,
  older: (flag: string) => `of an older version: headgate upgrade${flag}`,
  newer: () => 'of a newer version: npm install headgate@latest',
  'no-record': (flag: string) => `no version record yet: headgate deploy${flag}`,
  'no-table': () => 'missing, although the stack has it',
} as const;

const CODE = {
  current: () => 'of this package',
  other: (flag: string) => `other than this package: headgate upgrade${flag}`,
  missing: () => 'no such function, although the stack has it',
} as const;

/** `flag` is the option that names this stack: ` --env pre`. */
function render(data: StackStatusShape, flag: string, { width }: Style): string {
  const { functions, outputs, lastFailure } = data;
  const fields: (readonly [string, string])[] = [
    ['stack', `${data.stack} in ${data.region}`],
    ['status', statusText(data, flag)],
    ['version', `${data.version ?? 'unknown, deployed from the template'} (this package: ${data.thisVersion})`],
    ['created', instant(data.createdAt)],
    ['updated', instant(data.updatedAt)],
    ['table', tableText(data, flag)],
    ...(lastFailure === null ? [] : [['failed last', failureText(lastFailure)] as const]),
  ];
  const rows = functions.map(({ name, state, update, code, reason }) => [
    name,
    state ?? '-',
    update ?? '-',
    reason === null ? CODE[code](flag) : `${CODE[code](flag)}; ${reason}`,
  ]);
  const listed = Object.entries(outputs).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    drawFields(fields),
    ...(rows.length === 0 ? [] : ['', drawTable(['FUNCTION', 'STATE', 'UPDATE', 'CODE'], rows, width)]),
    ...(listed.length === 0 ? [] : ['', drawTable(['OUTPUT', 'VALUE'], listed, width)]),
  ].join('\n');
}

function instant(at: string | null): string {
  return at === null ? '-' : formatInstant(new Date(at));
}

function statusText({ status, statusReason }: StackStatusShape, flag: string): string {
  // The name of this status does not say that the stack is empty.
  if (status === 'REVIEW_IN_PROGRESS') return `${status}: the stack is empty: headgate deploy${flag}`;
  return statusReason === null ? status : `${status}: ${statusReason}`;
}

function tableText({ table, tableVersion }: StackStatusShape, flag: string): string {
  if (table === null || tableVersion === null) return '-';
  const version = tableVersion.schemaVersion === null ? '' : ` (schema version ${tableVersion.schemaVersion})`;
  return `${table}${version}: ${TABLE_STATE[tableVersion.state](flag)}`;
}

function failureText({ logicalId, type, reason }: NonNullable<StackStatusShape['lastFailure']>): string {
  return logicalId === null ? reason : `${logicalId} (${type ?? 'unknown'}): ${reason}`;
}
