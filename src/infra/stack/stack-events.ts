import type { StackEvent } from './cloudformation.js';

/** What began an operation; a roll-back belongs to the operation that it undoes. */
const BEGINNINGS = new Set([
  'CREATE_IN_PROGRESS',
  'UPDATE_IN_PROGRESS',
  'DELETE_IN_PROGRESS',
  'IMPORT_IN_PROGRESS',
  'REVIEW_IN_PROGRESS',
]);

export function isBeginning({ ofStack, status }: StackEvent): boolean {
  return ofStack && BEGINNINGS.has(status);
}

/** The events of the last operation, in their order. `events` have the last first, as CloudFormation gives them. */
export function lastOperation(events: readonly StackEvent[]): readonly StackEvent[] {
  const begin = events.findIndex(isBeginning);
  return (begin < 0 ? events : events.slice(0, begin + 1)).toReversed();
}

/** The events that came after `seenId`, in their order; all, if nobody has seen any. */
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

/** What is said of everything that was under way when something else failed. */
const CONSEQUENCE = /\bcancell?ed\b/i;

/**
 * Why an operation failed: what its first failed resource says, not what was cancelled for it. `events` are in their
 * order. null: no event says anything.
 */
export function rootCause(events: readonly StackEvent[]): ResourceFailure | null {
  const failed = failuresOf(events);
  const first = failed.find(({ reason }) => !CONSEQUENCE.test(reason)) ?? failed[0];
  if (first !== undefined) return first;
  const told = events.find(
    ({ ofStack, status, reason }) => ofStack && reason !== null && /ROLLBACK|FAILED/.test(status),
  );
  return told === undefined ? null : { logicalId: null, type: null, reason: told.reason ?? '' };
}

/** Every resource that failed, with its reason, in order. */
function failuresOf(events: readonly StackEvent[]): readonly ResourceFailure[] {
  return events
    .filter(({ ofStack, status }) => !ofStack && status.endsWith('_FAILED'))
    .map(({ logicalId, type, reason }) => ({ logicalId, type, reason: reason ?? 'no reason is given' }));
}

/** What a roll-back or a deletion left where it is. */
export function keptOf(events: readonly StackEvent[]): readonly StackEvent[] {
  return events.filter(({ ofStack, status }) => !ofStack && status === 'DELETE_SKIPPED');
}

/** Every failure, the root cause first. `stackReason` is what the stack says of itself, for where no event says more. */
export function causesFirst(events: readonly StackEvent[], stackReason: string | null): readonly ResourceFailure[] {
  const cause =
    rootCause(events) ?? (stackReason === null ? null : { logicalId: null, type: null, reason: stackReason });
  if (cause === null) return [];
  return [cause, ...failuresOf(events).filter((one) => one.logicalId !== cause.logicalId)];
}
