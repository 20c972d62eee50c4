import type { TableVersion } from '../../../backends/dynamodb/schema/prepare-table.js';
import { InfrastructureError, SchemaMismatch } from '../../../core/errors.js';
import { PARAMETERS, RESOURCES } from '../../template/names.js';
import type { Stack, StackResources, StackTools } from '../stack-tools.js';

export function tableOfStack({ name }: Stack, resources: StackResources): string {
  const table = resources[RESOURCES.table];
  if (table !== undefined) return table;
  const message = `Stack ${name} has no ${RESOURCES.table}: it does not belong to Headgate`;
  throw new InfrastructureError('infrastructure.stack-foreign', message);
}

/**
 * Throws when a table of that name exists outside the stack: CloudFormation would fail on it after creating everything
 * else.
 */
export async function requireNoTable(tools: StackTools, tableName: string): Promise<void> {
  if ((await tools.tables.readVersion(tableName)).kind === 'no-table') return;
  const message = `Table ${tableName} exists and belongs to no stack: --adopt imports it into this stack; or choose another name with --env or --table`;
  throw new InfrastructureError('infrastructure.table-exists', message);
}

/**
 * Throws when this package does not support the data of the stack's table. `forOlder` is the command that migrates an
 * older table; null: the caller is about to migrate.
 */
export async function requireVersion(tools: StackTools, stack: Stack, forOlder: string | null): Promise<void> {
  const table = (await tools.cloudformation.readResources(stack.name))[RESOURCES.table];
  if (table === undefined) {
    // A failed import leaves a stack without resources; updating it would create a table.
    const name = stack.parameters[PARAMETERS.tableName];
    if (stack.status === 'IMPORT_ROLLBACK_COMPLETE' && name !== undefined) await requireNoTable(tools, name);
    return;
  }
  const version = await tools.tables.readVersion(table);
  refuseVersion(table, version, forOlder);
  if (version.kind === 'no-table') {
    const message = `Table ${table} was deleted outside of stack ${stack.name}: restore it under this name, or run headgate delete, then headgate deploy`;
    throw new InfrastructureError('infrastructure.table-missing', message);
  }
}

/** Throws when this package does not support the data of the table; `forOlder` as above. */
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
  const message = `There is no stack ${name} in ${region}: headgate deploy${flag} creates it`;
  return new InfrastructureError('infrastructure.stack-missing', message);
}
