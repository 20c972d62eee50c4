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

/** What holds data that nothing brings back. */
const HOLDS_DATA = new Set(['AWS::DynamoDB::Table', 'AWS::DynamoDB::GlobalTable', 'AWS::S3::Bucket']);

/** Changes by which the stack would begin anew with an empty table or archive. */
export function dataLosses(changes: readonly Change[]): readonly Change[] {
  return changes.filter(
    ({ action, type, replacement }) =>
      HOLDS_DATA.has(type) && (action === 'Remove' || replacement === 'yes' || replacement === 'perhaps'),
  );
}
