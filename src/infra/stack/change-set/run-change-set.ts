import { InfrastructureError } from '../../../core/errors.js';
import { reasonOf } from '../../../core/reason-of.js';
import { FUNCTIONS } from '../../template/names.js';
import { changeSetStateOf } from './change-set.js';
import { causesFirst, keptOf, lastOperation } from '../status/stack-events.js';
import { stackFailed } from '../status/stack-failed.js';
import { lastEventId, untilEnded } from '../status/until-ended.js';
import type { StackNames } from '../stack-name.js';
import { decideDeploy, isEmptyShell } from '../status/stack-status.js';
import type { ResourceChange, ChangeSetRequest, FunctionCode, Stack, StackTools, Watcher } from '../stack-tools.js';

export interface ChangeSetRun {
  readonly names: StackNames;
  /** The stack before the run; null: there was none. */
  readonly before: Stack | null;
  readonly request: ChangeSetRequest;
  readonly dryRun: boolean;
  /** Throws to stop before any change. Not called in a dry run. */
  readonly allow: (changes: readonly ResourceChange[]) => Promise<void>;
}

export interface ChangeSetOutcome {
  /** null: no changes. */
  readonly changes: readonly ResourceChange[] | null;
  /** The stack after the run; null: there is none. */
  readonly stack: Stack | null;
}

const COMPARE_PAUSE_MS = 1_000;
const COMPARE_MS = 600_000;

/**
 * Creates a change set, asks for confirmation, executes it and waits. A change set that is not executed is deleted,
 * together with the empty stack that it created.
 */
export async function runChangeSet(
  tools: StackTools,
  watcher: Watcher,
  { names, before, request, dryRun, allow }: ChangeSetRun,
): Promise<ChangeSetOutcome> {
  const { cloudformation } = tools;
  const made = await cloudformation.createChangeSet(request);
  if (made === null) return { changes: null, stack: before };
  const discard = async (): Promise<void> => {
    await cloudformation.deleteChangeSet(made.id);
    if (before !== null) return;
    // A change set for a missing stack creates an empty stack. Another deployment may have filled it in the meantime.
    const shell = await cloudformation.describeStack(made.stackId);
    if (shell !== null && isEmptyShell(shell)) await cloudformation.deleteStack(made.stackId, tools.newId());
  };
  let changes: readonly ResourceChange[];
  try {
    const found = await untilCompared(tools, names, made.id);
    if (found === null) {
      await cloudformation.deleteChangeSet(made.id);
      return { changes: null, stack: before };
    }
    changes = found;
    if (!dryRun) await allow(changes);
  } catch (error) {
    // Report the first error. A change set that stays does no harm.
    await discard().catch(() => {});
    throw error;
  }
  if (!dryRun) return { changes, stack: await execute(tools, watcher, { names, before, changes, ...made }) };
  await discard();
  return { changes, stack: before };
}

/** The stack, once no operation is in progress; null: there is none. Throws when the stack cannot be deployed to. */
export async function untilIdle(tools: StackTools, watcher: Watcher, names: StackNames): Promise<Stack | null> {
  for (;;) {
    const stack = await tools.cloudformation.describeStack(names.stack);
    const decision = decideDeploy(stack, names.flag);
    if (stack === null || stack.status === 'DELETE_COMPLETE') return null;
    if (decision.kind === 'create' || decision.kind === 'update') return stack;
    if (decision.kind === 'refuse') throw await refusal(tools, stack, decision);
    watcher.onStep(`stack ${stack.name} is ${stack.status}: waiting until that ends`);
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

/** The changes, once CloudFormation has computed them; null: no changes. */
async function untilCompared(
  tools: StackTools,
  names: StackNames,
  id: string,
): Promise<readonly ResourceChange[] | null> {
  const startMs = tools.now();
  for (;;) {
    const state = changeSetStateOf(await tools.cloudformation.readChangeSet(id));
    if (state.kind === 'ready') return state.changes;
    if (state.kind === 'empty') return null;
    if (state.kind === 'failed') {
      const message = `CloudFormation refuses the change of stack ${names.stack}: ${state.reason}`;
      throw new InfrastructureError('infrastructure.change-set-failed', message);
    }
    if (tools.now() - startMs > COMPARE_MS) {
      const message = `CloudFormation did not compute the changes of stack ${names.stack} in 10 minutes`;
      throw new InfrastructureError('infrastructure.still-running', message, { retryable: true });
    }
    await tools.pause(COMPARE_PAUSE_MS);
  }
}

interface Execution {
  readonly names: StackNames;
  readonly before: Stack | null;
  readonly changes: readonly ResourceChange[];
  readonly id: string;
  readonly stackId: string;
}

async function execute(
  tools: StackTools,
  watcher: Watcher,
  { names, before, changes, id, stackId }: Execution,
): Promise<Stack> {
  const code = await saveCode(tools, before, changes);
  const afterEvent = await lastEventId(tools, stackId);
  watcher.onStep(`changing stack ${names.stack}`);
  await tools.cloudformation.executeChangeSet(id, tools.newId());
  const { ending, stack, events } = await untilEnded(tools, watcher, { kind: 'deploy', stackId, afterEvent });
  if (ending === 'done' && stack !== null) return stack;
  const status = stack?.status ?? 'DELETE_COMPLETE';
  const failures = causesFirst(events, stack?.reason ?? null);
  const next = decideDeploy(stack, names.flag);
  const kept = keptOf(events).map(({ logicalId, physicalId }) => `${logicalId} (${physicalId ?? ''})`);
  const leftover = kept.length === 0 ? '' : `. ${kept.join(', ')} was kept: delete it yourself`;
  const notes = [next.kind === 'refuse' ? `${next.hint}${leftover}` : null, await code.restore(watcher)];
  const hint = notes.filter((note) => note !== null).join('. ');
  const details = { stackName: names.stack, status, failures };
  throw stackFailed(`Stack ${names.stack} is ${status}`, details, { hint: hint === '' ? null : hint });
}

interface SavedCode {
  readonly name: string;
  /** null: the code could not be read. */
  readonly code: FunctionCode | null;
}

interface CodeBackup {
  /** Uploads the saved code where a roll-back replaced it. Returns a note for the user, or null. Never throws. */
  restore(watcher: Watcher): Promise<string | null>;
}

/**
 * Saves the code that the functions run before an update changes them. CloudFormation takes the code in the template,
 * which is a placeholder, as the function's code: a roll-back may replace the uploaded code with it.
 */
async function saveCode(
  tools: StackTools,
  before: Stack | null,
  changes: readonly ResourceChange[],
): Promise<CodeBackup> {
  const ids: readonly string[] = Object.values(FUNCTIONS);
  const touched = changes.filter(({ action, logicalId }) => action === 'Modify' && ids.includes(logicalId));
  if (before === null || isEmptyShell(before) || touched.length === 0) return { restore: () => Promise.resolve(null) };
  const resources = await tools.cloudformation.readResources(before.name);
  const names = touched.flatMap(({ logicalId }) => resources[logicalId] ?? []);
  const saved = await Promise.all(
    // Best effort: without the permission to read code, the update runs without this safeguard.
    names.map(async (name) => ({ name, code: await tools.functions.readCode(name).catch(() => null) })),
  );
  return {
    async restore(watcher) {
      const notes: string[] = [];
      for (const one of saved) {
        const note = await restoreOne(tools, watcher, one).catch((error: unknown) => failureNote(one.name, error));
        if (note !== null) notes.push(note);
      }
      return notes.length === 0 ? null : notes.join('. ');
    },
  };
}

async function restoreOne(tools: StackTools, watcher: Watcher, { name, code }: SavedCode): Promise<string | null> {
  if (code === null) return null;
  const found = await tools.functions.describe(name);
  if (found === null || found.sha256 === code.sha256) return null;
  watcher.onStep(`restoring the code of ${name}`);
  await tools.functions.uploadCode(name, code.bytes);
  return `The previous code of ${name} was restored`;
}

function failureNote(name: string, error: unknown): string {
  const reason = reasonOf(error);
  return `The previous code of ${name} could not be restored (${reason}): headgate upgrade uploads the code of this package`;
}
