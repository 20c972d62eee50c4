import type { StackEvent } from '../../infra/stack/cloudformation.js';
import { dataLosses } from '../../infra/stack/change-set.js';
import { drawFields, drawTable } from '../../visualize/table.js';
import type {
  DeployShape,
  StackChangeShape,
  StackDeletedShape,
  StackItemShape,
  UpgradeShape,
  UploadShape,
} from '../stack-shapes.js';
import { renderMigration } from './migrate.js';
import type { Style } from '../terminal.js';

const REPLACEMENT = { yes: 'replaced', conditional: 'may be replaced', no: 'in place' } as const;

export function renderChanges(changes: readonly StackChangeShape[], { width }: Style): string {
  if (changes.length === 0) return 'No resource changes.';
  const losses = new Set<StackChangeShape>(dataLosses(changes));
  const rows = changes.map((change) => {
    const how = change.replacement === null ? '' : REPLACEMENT[change.replacement];
    const note = losses.has(change) ? `${how === '' ? 'removed' : how}: its data would be out of reach` : how;
    return [change.action, change.logicalId, change.type, note];
  });
  return drawTable(['ACTION', 'RESOURCE', 'TYPE', 'HOW'], rows, width);
}

export function renderEvent({ at, status, logicalId, type, reason }: StackEvent, style: Style): string {
  const time = at.toISOString().slice(11, 19);
  const paint = status.includes('FAILED') || status.includes('ROLLBACK') ? style.red : (text: string) => text;
  return `${time}  ${paint(status)}  ${logicalId} (${type})${reason === null ? '' : `: ${reason}`}`;
}

const DONE = { create: 'created', update: 'updated', none: 'unchanged', adopt: 'adopted' } as const;
const WOULD = { create: 'to create', update: 'to update', none: 'unchanged', adopt: 'to adopt' } as const;
const REST = 'Then the rest of the template is added: functions, alarms, policies, archive.';

/** `settings` is what an adoption changes of the table. */
export function renderDeployed(data: DeployShape, settings: readonly string[], style: Style): string {
  if (data.dryRun) {
    const head = `${WOULD[data.action]}: stack ${data.stack}`;
    const rest = data.action === 'adopt' ? [...settings, REST] : [];
    return [head, renderChanges(data.changes, style), ...rest, ...uploads(data.functions, true), DRY_RUN].join('\n');
  }
  const table = data.table === null ? [] : [tableLine(data.table)];
  return [
    `${style.green(DONE[data.action])}: stack ${data.stack} (${data.status ?? ''})`,
    ...settings,
    ...table,
    ...uploads(data.functions, false),
    ...outputsOf(data.outputs),
  ].join('\n');
}

const DRY_RUN = 'Nothing was changed: this was a dry run.';

function outputsOf(outputs: Readonly<Record<string, string>>): readonly string[] {
  const entries = Object.entries(outputs).toSorted(byName);
  return entries.length === 0 ? [] : ['', drawFields(entries)];
}

function byName([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1;
}

function tableLine({ name, prepared }: { readonly name: string; readonly prepared: boolean }): string {
  return prepared
    ? `table ${name} is ready: version record written, namespace default registered`
    : `table ${name} was ready`;
}

function uploads(functions: readonly UploadShape[], dryRun: boolean): readonly string[] {
  return functions.map(({ name, uploaded }) => {
    if (!uploaded) return `code of ${name} is current`;
    return dryRun ? `code of ${name} differs: to upload` : `code of ${name} uploaded`;
  });
}

export function renderUpgraded(data: UpgradeShape, style: Style): string {
  const { template, data: migrated, dryRun } = data;
  const changes = dryRun && template.action !== 'none' ? [renderChanges(template.changes, style)] : [];
  return [
    `${style.green(dryRun ? 'to upgrade' : 'upgraded')}: stack ${data.stack}`,
    `template ${dryRun ? WOULD[template.action] : DONE[template.action]}`,
    ...changes,
    renderMigration({ ...migrated, dryRun }, style),
    ...uploads(data.functions, dryRun),
    ...(dryRun ? [DRY_RUN] : []),
  ].join('\n');
}

export function renderStackList(items: readonly StackItemShape[], region: string, { width }: Style): string {
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

export function renderStackDeleted({ stack, dryRun, deleted, kept }: StackDeletedShape, style: Style): string {
  if (!deleted) return `There is no stack ${stack}: nothing to delete.`;
  const stays = kept.map(({ logicalId, physicalId }) => `  ${logicalId} (${physicalId})`);
  const head = dryRun ? `to delete: stack ${stack}` : `${style.green('deleted')}: stack ${stack}`;
  return [
    head,
    ...(stays.length === 0 ? ['Nothing of it stays.'] : ['What stays:', ...stays]),
    ...(dryRun ? [DRY_RUN] : []),
  ].join('\n');
}
