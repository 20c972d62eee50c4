import type { TableVersion } from '../../../backends/dynamodb/schema/prepare-table.js';
import { InfrastructureError } from '../../../core/errors.js';
import { RESOURCES } from '../../template/names.js';
import { readinessOf, type Stack, type StackResources, type StackTools } from '../stack-tools.js';
import type { Bundle } from '../upload-code.js';
import { lastOperation, type ResourceFailure, rootCause } from './stack-events.js';
import type { StackNames } from '../stack-name.js';
import { foreignText, isEmptyShell, isHeadgates } from './stack-status.js';
import { missingStack } from '../table/stack-table.js';

export interface InspectedFunction {
  readonly name: string;
  /** null: there is no such function. */
  readonly state: string | null;
  readonly update: string | null;
  readonly reason: string | null;
  /** Whether it runs the code of this package. */
  readonly code: 'current' | 'other' | 'missing';
}

export interface Inspected {
  readonly region: string;
  readonly stack: Stack;
  readonly functions: readonly InspectedFunction[];
  /** null: the stack has no table yet. */
  readonly table: { readonly name: string; readonly version: TableVersion } | null;
  /** Why the last operation failed; null: it succeeded, or the reason is not known. */
  readonly lastFailure: ResourceFailure | null;
}

/** Reads the state of all parts of a stack. Writes nothing. */
export async function inspectStack(
  tools: StackTools,
  { stack: name, flag }: StackNames,
  bundles: readonly Bundle[],
): Promise<Inspected> {
  const { cloudformation } = tools;
  const [region, stack] = await Promise.all([cloudformation.region(), cloudformation.describeStack(name)]);
  if (stack === null) throw missingStack(name, region, flag);
  if (!isEmptyShell(stack) && !isHeadgates(stack)) {
    throw new InfrastructureError('infrastructure.stack-foreign', foreignText(name));
  }
  const resources = isEmptyShell(stack) ? {} : await cloudformation.readResources(name);
  const table = resources[RESOURCES.table];
  const [events, functions, version] = await Promise.all([
    cloudformation.readEvents(stack.id),
    Promise.all(bundles.map(async (bundle) => inspectFunction(tools, resources, bundle))),
    table === undefined ? null : tools.tables.readVersion(table),
  ]);
  return {
    region,
    stack,
    functions: functions.filter((one) => one !== null),
    table: table === undefined || version === null ? null : { name: table, version },
    lastFailure: rootCause(lastOperation(events)),
  };
}

async function inspectFunction(
  { functions }: StackTools,
  resources: StackResources,
  { logicalId, code }: Bundle,
): Promise<InspectedFunction | null> {
  const name = resources[logicalId];
  if (name === undefined) return null;
  const found = await functions.describe(name);
  if (found === null) return { name, state: null, update: null, reason: null, code: 'missing' };
  const readiness = readinessOf(found);
  return {
    name,
    state: found.state,
    update: found.update,
    reason: readiness.kind === 'failed' ? readiness.reason : null,
    code: found.sha256 === code.sha256 ? 'current' : 'other',
  };
}

/** Headgate's stacks of the region, by name. */
export async function listStacks({ cloudformation }: StackTools): Promise<readonly Stack[]> {
  const found: Stack[] = [];
  for await (const stack of cloudformation.listStacks()) {
    if (isHeadgates(stack) && stack.status !== 'DELETE_COMPLETE') found.push(stack);
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
