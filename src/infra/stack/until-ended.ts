import { BackendUnavailable, InfrastructureError } from '../../core/errors.js';
import type { Stack, StackEvent } from './cloudformation.js';
import { type Ending, endingOf } from './stack-status.js';
import { eventsAfter, isBeginning } from './stack-events.js';
import type { StackTools, Watcher } from './stack-tools.js';

const PATIENCE_MS = 3_600_000;
/** A stack shows for a moment the state that it had before. */
const BEGIN_MS = 30_000;
/** Nobody answers a question for so long: then it is not for a moment. */
const OUTAGE_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 3_000;

export interface Ended {
  readonly ending: Ending;
  /** null: it is gone. */
  readonly stack: Stack | null;
  /** Of this operation, in their order. */
  readonly events: readonly StackEvent[];
}

interface Operation {
  readonly kind: 'deploy' | 'delete';
  /** An id: a deleted stack has no name. */
  readonly stackId: string;
  /** The last event before it began; null: it may have begun long ago. */
  readonly afterEvent: string | null;
}

/** Waits until CloudFormation has ended what it does to a stack, and tells every event once, in order. */
export async function untilEnded(tools: StackTools, watcher: Watcher, operation: Operation): Promise<Ended> {
  const startMs = tools.now();
  let told = operation.afterEvent;
  let outMs: number | null = null;
  /** Known before the stack was looked at: what had begun by then, its state tells. */
  let begun = operation.afterEvent === null;
  for (let waitMs = FIRST_PAUSE_MS; ; waitMs = Math.min(LONGEST_PAUSE_MS, 1.5 * waitMs)) {
    try {
      // The stack first: when it has ended, the events hold everything.
      const stack = await tools.cloudformation.describeStack(operation.stackId);
      const events = await tools.cloudformation.readEvents(operation.stackId);
      for (const event of eventsAfter(events, told)) watcher.onEvent(event);
      told = events[0]?.id ?? told;
      const own = eventsAfter(events, operation.afterEvent);
      const ending = endingOf(operation.kind, stack?.status ?? 'DELETE_COMPLETE');
      if (begun && ending !== null) return { ending, stack, events: own };
      begun ||= own.some(isBeginning) || tools.now() - startMs > BEGIN_MS;
      outMs = null;
    } catch (error) {
      if (!(error instanceof BackendUnavailable)) throw error;
      outMs ??= tools.now();
      if (tools.now() - outMs > OUTAGE_MS) throw error;
    }
    if (tools.now() - startMs > PATIENCE_MS) {
      const message = `CloudFormation was not done with stack ${operation.stackId} after an hour: headgate status shows how it goes on`;
      throw new InfrastructureError('infrastructure.still-running', message, { retryable: true });
    }
    await tools.pause(waitMs);
  }
}

/** The last event of a stack, behind which an operation begins; null: it has none. */
export async function lastEventId(tools: StackTools, stackId: string): Promise<string | null> {
  const [last] = await tools.cloudformation.readEvents(stackId);
  return last?.id ?? null;
}
