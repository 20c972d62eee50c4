import type { ResourceChange } from '../../infra/stack/stack-tools.js';
import { dataLosses } from '../../infra/stack/change-set/change-set.js';
import { drawTable } from '../../visualize/table.js';
import type { Style } from '../terminal/terminal.js';
import type { StackChangeShape, UploadShape } from './stack-shapes.js';

/** The part of a change that `--json` prints. */
export function changeShape({ action, logicalId, physicalId, type, replacement }: ResourceChange): StackChangeShape {
  return { action, logicalId, physicalId, type, replacement };
}

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

export const DONE = { create: 'created', update: 'updated', none: 'unchanged', adopt: 'adopted' } as const;
export const WOULD = { create: 'to create', update: 'to update', none: 'unchanged', adopt: 'to adopt' } as const;
export const DRY_RUN = 'Nothing was changed: this was a dry run.';

export function uploadLines(functions: readonly UploadShape[], dryRun: boolean): readonly string[] {
  return functions.map(({ name, uploaded }) => {
    if (!uploaded) return `code of ${name} is current`;
    return dryRun ? `code of ${name} differs: to upload` : `code of ${name} uploaded`;
  });
}
