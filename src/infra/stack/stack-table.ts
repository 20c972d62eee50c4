import type { TableVersion } from '../../backends/dynamodb/table/prepare-table.js';
import { InfrastructureError, SchemaMismatch } from '../../core/errors.js';
import { PARAMETERS, RESOURCES } from '../template/names.js';
import type { Stack, StackResources } from './cloudformation.js';
import type { StackTools } from './stack-tools.js';

export function tableNameOf({ name }: Stack, resources: StackResources): string {
  const table = resources[RESOURCES.table];
  if (table !== undefined) return table;
  const message = `Stack ${name} has no ${RESOURCES.table}: it is not one of Headgate's`;
  throw new InfrastructureError('infrastructure.stack-foreign', message);
}

/** Throws if there is a table of that name which no stack has: CloudFormation would fail at it, after everything else. */
export async function requireNoTable(tools: StackTools, tableName: string): Promise<void> {
  if ((await tools.tables.readVersion(tableName)).kind === 'no-table') return;
  const message = `Table ${tableName} exists, and no stack has it: --adopt puts it under this stack; or choose another name by --env or --table`;
  throw new InfrastructureError('infrastructure.table-exists', message);
}

/**
 * Throws if the stack has a table whose data this package does not fit. `forOlder` is the command for a table that must be
 * migrated first; null: that is what is about to happen.
 */
export async function requireVersion(tools: StackTools, stack: Stack, forOlder: string | null): Promise<void> {
  const table = (await tools.cloudformation.readResources(stack.name))[RESOURCES.table];
  if (table === undefined) {
    // An import that failed leaves a stack without anything, and the update of that would make a table.
    const name = stack.parameters[PARAMETERS.tableName];
    if (stack.status === 'IMPORT_ROLLBACK_COMPLETE' && name !== undefined) await requireNoTable(tools, name);
    return;
  }
  const version = await tools.tables.readVersion(table);
  refuseVersion(table, version, forOlder);
  if (version.kind === 'no-table') {
    const message = `Table ${table} is gone, although stack ${stack.name} has it: restore it under this name, or run headgate delete, then headgate deploy`;
    throw new InfrastructureError('infrastructure.table-missing', message);
  }
}

/** Throws if the data of the table do not fit this package; `forOlder` as above. */
export function refuseVersion(table: string, version: TableVersion, forOlder: string | null): void {
  if (version.kind === 'newer') {
    const message = `Table ${table} has schema version ${version.schemaVersion}, this package has ${version.ours}`;
    throw new SchemaMismatch(message, 'npm install headgate@latest');
  }
  if (version.kind === 'older' && forOlder !== null) {
    const message = `Table ${table} has schema version ${version.schemaVersion}, this package has ${version.ours}`;
    throw new SchemaMismatch(`${message}: its data must be migrated before the code is changed`, forOlder);
  }
}

export function missingStack(name: string, region: string, flag: string): InfrastructureError {
  const message = `There is no stack ${name} in ${region}: headgate deploy${flag} makes it`;
  return new InfrastructureError('infrastructure.stack-missing', message);
}
