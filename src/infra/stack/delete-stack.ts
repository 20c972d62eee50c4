import { InfrastructureError } from '../../core/errors.js';
import type { Stack, StackTools, Watcher } from './stack-tools.js';
import { causesFirst } from './status/stack-events.js';
import { stackFailed } from './status/stack-failed.js';
import { lastEventId, untilEnded } from './status/until-ended.js';
import type { StackNames } from './stack-name.js';
import { isEmptyShell, isHeadgates } from './status/stack-status.js';

export interface DeleteRequest {
  readonly names: StackNames;
  readonly dryRun: boolean;
  /** Throws to stop the deletion. `retained` lists the resources that stay. */
  readonly confirm: (stack: Stack, retained: readonly KeptResource[]) => Promise<void>;
}

export interface KeptResource {
  readonly logicalId: string;
  readonly physicalId: string;
}

export interface Deleted {
  /** false: there was no stack. In a dry run: whether a stack exists. */
  readonly deleted: boolean;
  readonly kept: readonly KeptResource[];
}

/** Deletes a stack. Resources that its template retains stay. A missing stack counts as deleted. */
export async function deleteStack(
  tools: StackTools,
  watcher: Watcher,
  { names, dryRun, confirm }: DeleteRequest,
): Promise<Deleted> {
  const { cloudformation } = tools;
  const stack = await cloudformation.describeStack(names.stack);
  if (stack === null || stack.status === 'DELETE_COMPLETE') return { deleted: false, kept: [] };
  refuseForeign(stack);
  const isInProgress = stack.status === 'DELETE_IN_PROGRESS';
  const retained = await readRetained(tools, stack);
  if (dryRun) return { deleted: true, kept: retained };
  if (!isInProgress) await confirm(stack, retained);
  const afterEvent = isInProgress ? null : await lastEventId(tools, stack.id);
  watcher.onStep(`deleting stack ${names.stack}`);
  if (!isInProgress) await cloudformation.deleteStack(stack.id, tools.newId());
  const ended = await untilEnded(tools, watcher, { kind: 'delete', stackId: stack.id, afterEvent });
  if (ended.ending === 'done') return { deleted: true, kept: retained };
  const status = ended.stack?.status ?? 'DELETE_FAILED';
  const failures = causesFirst(ended.events, ended.stack?.reason ?? null);
  throw stackFailed(
    `Stack ${names.stack} is ${status}`,
    { stackName: names.stack, status, failures },
    { shown: failures.length },
  );
}

async function readRetained({ cloudformation }: StackTools, stack: Stack): Promise<readonly KeptResource[]> {
  if (isEmptyShell(stack)) return [];
  const [retained, resources] = await Promise.all([
    cloudformation.readRetained(stack.name),
    cloudformation.readResources(stack.name),
  ]);
  return retained.flatMap((logicalId) => {
    const physicalId = resources[logicalId];
    return physicalId === undefined ? [] : [{ logicalId, physicalId }];
  });
}

function refuseForeign(stack: Stack): void {
  if (isEmptyShell(stack) || isHeadgates(stack)) return;
  const message = `Stack ${stack.name} does not belong to Headgate: nothing was deleted`;
  throw new InfrastructureError('infrastructure.stack-foreign', message);
}
