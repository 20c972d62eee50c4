import { formatInstant } from '../../visualize/format.js';
import { drawFields, drawTable } from '../../visualize/table.js';
import type { StackStatusShape } from '../stack-shapes.js';

const TABLE_STATE = {
  current: 'ready',
  older: 'of an older version: headgate upgrade',
  newer: 'of a newer version: npm install headgate@latest',
  'no-record': 'has no version record yet: headgate deploy',
  'no-table': 'is missing',
} as const;

const CODE = {
  current: 'of this package',
  other: 'other than this package: headgate upgrade',
  missing: 'no such function',
} as const;

export function renderStatus(data: StackStatusShape): string {
  const { functions, outputs, lastFailure } = data;
  const fields: (readonly [string, string])[] = [
    ['stack', `${data.stack} in ${data.region}`],
    ['status', data.statusReason === null ? data.status : `${data.status}: ${data.statusReason}`],
    ['version', `${data.version ?? 'unknown: deployed by hand'} (this package: ${data.thisVersion})`],
    ['created', instant(data.createdAt)],
    ['updated', instant(data.updatedAt)],
    ['table', tableText(data)],
    ...(lastFailure === null ? [] : [['failed last', failureText(lastFailure)] as const]),
  ];
  const rows = functions.map(({ name, state, update, code, reason }) => [
    name,
    state ?? '-',
    update ?? '-',
    reason === null ? CODE[code] : `${CODE[code]}; ${reason}`,
  ]);
  const listed = Object.entries(outputs).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    drawFields(fields),
    ...(rows.length === 0 ? [] : ['', drawTable(['FUNCTION', 'STATE', 'UPDATE', 'CODE'], rows)]),
    ...(listed.length === 0 ? [] : ['', drawTable(['OUTPUT', 'VALUE'], listed)]),
  ].join('\n');
}

function instant(at: string | null): string {
  return at === null ? '-' : formatInstant(new Date(at));
}

function tableText({ table, tableVersion }: StackStatusShape): string {
  if (table === null || tableVersion === null) return '-';
  const version = tableVersion.schemaVersion === null ? '' : ` (schema version ${tableVersion.schemaVersion})`;
  return `${table}${version} ${TABLE_STATE[tableVersion.state]}`;
}

function failureText({ logicalId, type, reason }: NonNullable<StackStatusShape['lastFailure']>): string {
  return logicalId === null ? reason : `${logicalId} (${type ?? 'unknown'}): ${reason}`;
}
