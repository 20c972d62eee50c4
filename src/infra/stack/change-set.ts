import type { Change, ChangeSet } from './cloudformation.js';

export type ChangeSetState =
  | { readonly kind: 'pending' }
  | { readonly kind: 'ready'; readonly changes: readonly Change[] }
  /** The stack is as the template wants it. CloudFormation calls that a failure. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'failed'; readonly reason: string };

/** The two sentences that CloudFormation has for it. */
const NOTHING_TO_DO = /didn't contain changes|No updates are to be performed/i;

export function readState({ status, reason, changes }: ChangeSet): ChangeSetState {
  if (status === 'CREATE_COMPLETE') return { kind: 'ready', changes };
  if (status === 'CREATE_PENDING' || status === 'CREATE_IN_PROGRESS') return { kind: 'pending' };
  if (status === 'FAILED' && reason !== null && saysNothingToDo(reason)) return { kind: 'empty' };
  return { kind: 'failed', reason: reason ?? `the change set is ${status}` };
}

export function saysNothingToDo(reason: string): boolean {
  return NOTHING_TO_DO.test(reason);
}

/** Nothing but tags: of what a user deployed from the printed template, those that `deploy` adds. */
export function isTagOnly({ action, replacement, scope }: Change): boolean {
  return action === 'Modify' && replacement === 'no' && scope.length > 0 && scope.every((part) => part === 'Tags');
}

/** What holds data that nothing brings back. */
const HOLDS_DATA = new Set(['AWS::DynamoDB::Table', 'AWS::DynamoDB::GlobalTable', 'AWS::S3::Bucket']);

/** Changes by which the stack would begin anew with an empty table or archive. */
export function dataLosses<C extends Omit<Change, 'scope'>>(changes: readonly C[]): readonly C[] {
  return changes.filter(
    ({ action, type, replacement }) =>
      HOLDS_DATA.has(type) && (action === 'Remove' || replacement === 'yes' || replacement === 'conditional'),
  );
}
