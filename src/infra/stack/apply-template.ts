import { InfrastructureError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { dataLosses, readState } from './change-set.js';
import type { Change, Stack } from './cloudformation.js';
import { buildChangeSetRequest } from './change-set-request.js';
import { stackFailed } from './errors.js';
import { causesFirst, keptOf, lastOperation } from './stack-events.js';
import type { StackNames } from './stack-name.js';
import { decideDeploy, isEmptyShell } from './stack-status.js';
import type { StackTools, Watcher } from './stack-tools.js';
import { lastEventId, untilEnded } from './until-ended.js';

export interface TemplateRequest {
  readonly names: StackNames;
  readonly template: Template;
  /** Of this package. */
  readonly version: string;
  /** Parameters. Those that the stack has, and that are not named here, keep their values. */
  readonly given: Readonly<Record<string, string>>;
  readonly dryRun: boolean;
  /** Lets a table or an archive be replaced or removed. */
  readonly allowReplacement: boolean;
  /** Throws if the stack (null: there is none) is not to be touched at all. */
  readonly check: (stack: Stack | null) => Promise<void>;
  /** Throws to stop it before anything is changed. */
  readonly confirm: (action: 'create' | 'update', changes: readonly Change[]) => Promise<void>;
}

export interface TemplateOutcome {
  readonly action: 'create' | 'update' | 'none';
  readonly changes: readonly Change[];
  /** As it is now; null: there is none, since this was a dry run. */
  readonly stack: Stack | null;
}

const COMPARE_PAUSE_MS = 1_000;
const COMPARE_MS = 600_000;

/** Brings a stack to what the template wants, through a change set. A dry run says what would change, and changes nothing. */
export async function applyTemplate(
  tools: StackTools,
  watcher: Watcher,
  request: TemplateRequest,
): Promise<TemplateOutcome> {
  const { cloudformation } = tools;
  const { names, dryRun } = request;
  const before = await untilIdle(tools, watcher, names);
  const action = before === null || isEmptyShell(before) ? 'create' : 'update';
  await request.check(before);
  watcher.onStep(`comparing stack ${names.stack} with the template`);
  const made = await cloudformation.createChangeSet(buildChangeSetRequest(request, before, tools.newId()));
  if (made === null) return { action: 'none', changes: [], stack: before };
  const forget = async (): Promise<void> => {
    await cloudformation.deleteChangeSet(made.id);
    if (before !== null) return;
    // A change set of a stack that is not there makes one that is empty. Somebody else may be filling it by now.
    const shell = await cloudformation.describeStack(made.stackId);
    if (shell !== null && isEmptyShell(shell)) await cloudformation.deleteStack(made.stackId, tools.newId());
  };
  let changes: readonly Change[];
  try {
    const found = await untilCompared(tools, names, made.id);
    if (found === null) {
      await cloudformation.deleteChangeSet(made.id);
      return { action: 'none', changes: [], stack: before };
    }
    changes = found;
    if (!dryRun) await allow(request, action, changes);
  } catch (error) {
    // What stopped it is what there is to say; a change set that stays does no harm.
    await forget().catch(() => {});
    throw error;
  }
  if (!dryRun) return { action, changes, stack: await execute(tools, watcher, names, made) };
  await forget();
  return { action, changes, stack: before };
}

/** The stack once nothing is under way; null: there is none. Throws if it cannot be deployed to. */
async function untilIdle(tools: StackTools, watcher: Watcher, names: StackNames): Promise<Stack | null> {
  for (;;) {
    const stack = await tools.cloudformation.describeStack(names.stack);
    const decision = decideDeploy(stack, names.flag);
    if (stack === null || stack.status === 'DELETE_COMPLETE') return null;
    if (decision.kind === 'create' || decision.kind === 'update') return stack;
    if (decision.kind === 'refuse') throw await refusal(tools, stack, decision);
    watcher.onStep(`stack ${stack.name} is ${stack.status}: waiting for the end of that`);
    await untilEnded(tools, watcher, { kind: 'deploy', stackId: stack.id, afterEvent: null });
  }
}

async function refusal(
  { cloudformation }: StackTools,
  stack: Stack,
  { why, hint, failed }: { readonly why: string; readonly hint: string; readonly failed: boolean },
): Promise<InfrastructureError> {
  if (!failed) return new InfrastructureError('infrastructure.stack-foreign', `${why}: ${hint}`);
  const failures = causesFirst(lastOperation(await cloudformation.readEvents(stack.id)), stack.reason);
  return stackFailed(why, { stackName: stack.name, status: stack.status, failures }, { hint });
}

/** The changes, once CloudFormation has found them; null: there are none. */
async function untilCompared(tools: StackTools, names: StackNames, id: string): Promise<readonly Change[] | null> {
  const startMs = tools.now();
  for (;;) {
    const state = readState(await tools.cloudformation.readChangeSet(id));
    if (state.kind === 'ready') return state.changes;
    if (state.kind === 'empty') return null;
    if (state.kind === 'failed') {
      const message = `CloudFormation refuses the change of stack ${names.stack}: ${state.reason}`;
      throw new InfrastructureError('infrastructure.change-set-failed', message);
    }
    if (tools.now() - startMs > COMPARE_MS) {
      const message = `CloudFormation did not say in 10 minutes what would change in stack ${names.stack}`;
      throw new InfrastructureError('infrastructure.still-running', message, { retryable: true });
    }
    await tools.pause(COMPARE_PAUSE_MS);
  }
}

async function allow(
  { allowReplacement, confirm }: TemplateRequest,
  action: 'create' | 'update',
  changes: readonly Change[],
): Promise<void> {
  const losses = allowReplacement ? [] : dataLosses(changes);
  if (losses.length === 0) return confirm(action, changes);
  const named = losses.map(({ logicalId, physicalId, action: what }) => {
    const how = what === 'Remove' ? 'removed' : 'replaced';
    return `${logicalId} (${physicalId ?? 'not made yet'}) would be ${how}`;
  });
  const message = `${named.join(', ')}, and what it holds would be out of reach: --allow-replacement lets it happen`;
  throw new InfrastructureError('infrastructure.data-loss', message);
}

async function execute(
  tools: StackTools,
  watcher: Watcher,
  names: StackNames,
  { id, stackId }: { readonly id: string; readonly stackId: string },
): Promise<Stack> {
  const afterEvent = await lastEventId(tools, stackId);
  watcher.onStep(`changing stack ${names.stack}`);
  await tools.cloudformation.executeChangeSet(id, tools.newId());
  const { ending, stack, events } = await untilEnded(tools, watcher, { kind: 'deploy', stackId, afterEvent });
  if (ending === 'done' && stack !== null) return stack;
  const status = stack?.status ?? 'DELETE_COMPLETE';
  const failures = causesFirst(events, stack?.reason ?? null);
  const next = decideDeploy(stack, names.flag);
  const kept = keptOf(events).map(({ logicalId, physicalId }) => `${logicalId} (${physicalId ?? ''})`);
  const leftover = kept.length === 0 ? '' : `. ${kept.join(', ')} stayed: that is yours to delete`;
  const hint = next.kind === 'refuse' ? `${next.hint}${leftover}` : null;
  throw stackFailed(`Stack ${names.stack} is ${status}`, { stackName: names.stack, status, failures }, { hint });
}
