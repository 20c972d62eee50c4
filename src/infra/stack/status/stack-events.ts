import { BackendUnavailable, InfrastructureError } from '../../../core/errors.js';
import { type Ending, endingOf } from './stack-status.js';
import type { Stack, StackEvent, StackTools, Watcher } from '../stack-tools.js';

/** The statuses that start an operation. A roll-back belongs to the operation that it undoes. */
const START_STATUSES = new Set([
  'CREATE_IN_PROGRESS',
  'UPDATE_IN_PROGRESS',
  'DELETE_IN_PROGRESS',
  'IMPORT_IN_PROGRESS',
  'REVIEW_IN_PROGRESS',
]);

export function isStart({ ofStack, status }: StackEvent): boolean {
  return ofStack && START_STATUSES.has(status);
}

/**
 * The events of the last operation, the oldest first. `events` have the newest first, as CloudFormation returns them.
 */
export function lastOperation(events: readonly StackEvent[]): readonly StackEvent[] {
  const start = events.findIndex(isStart);
  return (start < 0 ? events : events.slice(0, start + 1)).toReversed();
}

/** The events after `seenId`, the oldest first; all events when `seenId` is null or unknown. */
export function eventsAfter(events: readonly StackEvent[], seenId: string | null): readonly StackEvent[] {
  const seen = seenId === null ? -1 : events.findIndex(({ id }) => id === seenId);
  return (seen < 0 ? events : events.slice(0, seen)).toReversed();
}

export interface ResourceFailure {
  /** null: the stack itself. */
  readonly logicalId: string | null;
  readonly type: string | null;
  readonly reason: string;
}

/** CloudFormation's reason for resources that it cancelled because another one failed. */
const CONSEQUENCE = /\bcancell?ed\b/i;

/**
 * Why an operation failed: the reason of the first resource that failed and was not cancelled. `events` have the oldest
 * first. null: no event gives a reason.
 */
export function rootCause(events: readonly StackEvent[]): ResourceFailure | null {
  const failed = failuresOf(events);
  const first = failed.find(({ reason }) => !CONSEQUENCE.test(reason)) ?? failed[0];
  if (first !== undefined) return first;
  const event = events.find(
    ({ ofStack, status, reason }) => ofStack && reason !== null && /ROLLBACK|FAILED/.test(status),
  );
  return event === undefined ? null : { logicalId: null, type: null, reason: event.reason ?? '' };
}

/** Every failed resource with its reason, in order. */
function failuresOf(events: readonly StackEvent[]): readonly ResourceFailure[] {
  return events
    .filter(({ ofStack, status }) => !ofStack && status.endsWith('_FAILED'))
    .map(({ logicalId, type, reason }) => ({ logicalId, type, reason: reason ?? 'no reason is given' }));
}

/** The resources that a roll-back or a deletion kept. */
export function keptOf(events: readonly StackEvent[]): readonly StackEvent[] {
  return events.filter(({ ofStack, status }) => !ofStack && status === 'DELETE_SKIPPED');
}

/** Every failure, the root cause first. `stackReason` is the stack's own reason, used when no event has one. */
export function causesFirst(events: readonly StackEvent[], stackReason: string | null): readonly ResourceFailure[] {
  const cause =
    rootCause(events) ?? (stackReason === null ? null : { logicalId: null, type: null, reason: stackReason });
  if (cause === null) return [];
  return [cause, ...failuresOf(events).filter((one) => one.logicalId !== cause.logicalId)];
}

const MAX_WAIT_MS = 3_600_000;
/** For a moment after its start, an operation is not visible in the stack's status. */
const BEGIN_MS = 30_000;
/** An outage shorter than this does not end the wait. */
const OUTAGE_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 3_000;

export interface Ended {
  readonly ending: Ending;
  /** null: the stack was deleted. */
  readonly stack: Stack | null;
  /** The events of this operation, the oldest first. */
  readonly events: readonly StackEvent[];
}

interface StackOperation {
  readonly kind: 'deploy' | 'delete';
  /** The stack's id: a deleted stack cannot be found by name. */
  readonly stackId: string;
  /** The last event before the operation started; null: it may have started long ago. */
  readonly afterEvent: string | null;
}

/** Waits until the operation on a stack has ended. Reports every event once, in order. */
export async function untilEnded(tools: StackTools, watcher: Watcher, operation: StackOperation): Promise<Ended> {
  const startMs = tools.now();
  let reported = operation.afterEvent;
  let outMs: number | null = null;
  /** Set before the stack is read: a status read after the start belongs to this operation. */
  let begun = operation.afterEvent === null;
  for (let waitMs = FIRST_PAUSE_MS; ; waitMs = Math.min(MAX_PAUSE_MS, 1.5 * waitMs)) {
    try {
      // Read the stack first: once its status is final, the events are complete.
      const stack = await tools.cloudformation.describeStack(operation.stackId);
      const events = await tools.cloudformation.readEvents(operation.stackId);
      for (const event of eventsAfter(events, reported)) watcher.onEvent(event);
      reported = events[0]?.id ?? reported;
      const own = eventsAfter(events, operation.afterEvent);
      const ending = endingOf(operation.kind, stack?.status ?? 'DELETE_COMPLETE');
      if (begun && ending !== null) return { ending, stack, events: own };
      begun ||= own.some(isStart) || tools.now() - startMs > BEGIN_MS;
      outMs = null;
    } catch (error) {
      if (!(error instanceof BackendUnavailable)) throw error;
      outMs ??= tools.now();
      if (tools.now() - outMs > OUTAGE_MS) throw error;
    }
    if (tools.now() - startMs > MAX_WAIT_MS) {
      const message = `CloudFormation did not finish the operation on stack ${operation.stackId} in an hour: headgate status shows its progress`;
      throw new InfrastructureError('infrastructure.still-running', message, { retryable: true });
    }
    await tools.pause(waitMs);
  }
}

/** The id of a stack's last event; null: it has none. Later events belong to the next operation. */
export async function lastEventId(tools: StackTools, stackId: string): Promise<string | null> {
  const [last] = await tools.cloudformation.readEvents(stackId);
  return last?.id ?? null;
}

/** An operation on a stack failed. `failures` has CloudFormation's reason for each resource, the root cause first. */
export class StackFailed extends InfrastructureError {
  readonly stackName: string;
  readonly status: string;
  readonly failures: readonly ResourceFailure[];

  constructor(message: string, details: StackFailedDetails) {
    super('infrastructure.stack-failed', message);
    this.stackName = details.stackName;
    this.status = details.status;
    this.failures = details.failures;
  }
}

interface StackFailedDetails {
  readonly stackName: string;
  readonly status: string;
  readonly failures: readonly ResourceFailure[];
}

/**
 * `what` states the failure: "Stack headgate-pre is UPDATE_ROLLBACK_COMPLETE". The message includes the first `shown`
 * failures.
 */
export function stackFailed(
  what: string,
  details: StackFailedDetails,
  { hint = null, shown = 1 }: { readonly hint?: string | null; readonly shown?: number } = {},
): StackFailed {
  const causes = details.failures.slice(0, shown).map((failure) => trimEnd(describeFailure(failure)));
  const why = causes.length === 0 ? 'CloudFormation gives no reason' : causes.join('; ');
  return new StackFailed(`${what}: ${why}${hint === null ? '' : `. ${hint}`}`, details);
}

function describeFailure({ logicalId, type, reason }: ResourceFailure): string {
  return logicalId === null ? reason : `${logicalId} (${type ?? 'unknown'}): ${reason}`;
}

function trimEnd(text: string): string {
  return text.trim().replace(/\.$/, '');
}
