import type { StackEvent } from '../stack-tools.js';

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
