import { formatInstant } from '../../visualize/format.js';
import { drawFields, drawTable } from '../../visualize/table.js';
import type { StackStatusShape } from '../stack-shapes.js';
import type { Style } from '../terminal.js';

const TABLE_STATE = {
  current: () => 'ready',
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

/** `flag` makes a command mean this stack: ` --env pre`. */
export function renderStatus(data: StackStatusShape, flag: string, { width }: Style): string {
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
  // CloudFormation's own name for it says nothing to those who have not met it.
  if (status === 'REVIEW_IN_PROGRESS') return `${status}: empty, nothing was made yet: headgate deploy${flag}`;
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
