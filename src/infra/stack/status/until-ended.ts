import { BackendUnavailable, InfrastructureError } from '../../../core/errors.js';
import type { Stack, StackEvent, StackTools, Watcher } from '../stack-tools.js';
import { eventsAfter, isStart } from './stack-events.js';
import { type StackEnding, endingOf } from './stack-status.js';

const MAX_WAIT_MS = 3_600_000;
/** For a moment after its start, an operation is not visible in the stack's status. */
const BEGIN_MS = 30_000;
/** An outage shorter than this does not end the wait. */
const OUTAGE_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 3_000;

export interface Ended {
  readonly ending: StackEnding;
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
