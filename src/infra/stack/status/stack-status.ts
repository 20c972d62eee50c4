import { OUTPUTS } from '../../template/names.js';
import type { Stack } from '../stack-tools.js';

/** Every stack of Headgate has this tag; `list` finds stacks by it. */
export const VERSION_TAG = 'headgate:version';
export const ENV_TAG = 'headgate:env';

/** The possible actions on a stack, by its status. */
export type DeployDecision =
  | { readonly kind: 'create' }
  | { readonly kind: 'update' }
  /** An operation is in progress: try again when it has ended. */
  | { readonly kind: 'wait' }
  /** `hint` says what to do first; `failed`: the stack's events have the reason. */
  | { readonly kind: 'refuse'; readonly why: string; readonly hint: string; readonly failed: boolean };

const UPDATABLE = new Set([
  'CREATE_COMPLETE',
  'UPDATE_COMPLETE',
  'UPDATE_ROLLBACK_COMPLETE',
  'UPDATE_FAILED',
  'IMPORT_COMPLETE',
  'IMPORT_ROLLBACK_COMPLETE',
]);

/** The first creation failed. CloudFormation then only allows deletion. */
const NEVER_MADE = new Set(['CREATE_FAILED', 'ROLLBACK_COMPLETE', 'ROLLBACK_FAILED']);

/** The status of an empty stack whose change set was never executed. */
const EMPTY = 'REVIEW_IN_PROGRESS';

/** `flag` selects this stack in a command: ` --env pre`. */
export function decideDeploy(stack: Stack | null, flag: string): DeployDecision {
  if (stack === null || stack.status === EMPTY || stack.status === 'DELETE_COMPLETE') return { kind: 'create' };
  const { name, status } = stack;
  if (!isHeadgates(stack)) {
    return { kind: 'refuse', why: foreignText(name), hint: 'choose another name with --env or --table', failed: false };
  }
  if (isInProgress(status)) return { kind: 'wait' };
  if (UPDATABLE.has(status)) return { kind: 'update' };
  return { kind: 'refuse', why: `Stack ${name} is ${status}`, hint: hintFor(status, name, flag), failed: true };
}

function hintFor(status: string, name: string, flag: string): string {
  if (NEVER_MADE.has(status)) return `The stack was never created: run headgate delete${flag}, then deploy again`;
  if (status === 'DELETE_FAILED') return `Delete the resource that it names, then run headgate delete${flag}`;
  return `Run: aws cloudformation continue-update-rollback --stack-name ${name}`;
}

/** Whether CloudFormation has an operation in progress on the stack. */
function isInProgress(status: string): boolean {
  return status.endsWith('_IN_PROGRESS') && status !== EMPTY;
}

/** The stack has no resources: its change set was never executed. */
export function isEmptyShell({ status }: Stack): boolean {
  return status === EMPTY;
}

/** A failed stack has no outputs, and a stack that was deployed by hand has no tags. Either one is enough. */
export function isHeadgates({ tags, outputs }: Stack): boolean {
  if (VERSION_TAG in tags) return true;
  return OUTPUTS.tableArn in outputs && OUTPUTS.streamFunctionName in outputs;
}

export function foreignText(name: string): string {
  return `Stack ${name} does not belong to Headgate: it has neither the tag ${VERSION_TAG} nor Headgate's outputs`;
}

/** Whether the last operation on the stack failed. A roll-back is a failure too. */
export function hasFailed(status: string): boolean {
  return !isInProgress(status) && (status.endsWith('_FAILED') || status.includes('ROLLBACK'));
}

/** How an operation ended. */
export type StackEnding = 'done' | 'failed';

const GOOD: Readonly<Record<'deploy' | 'delete', ReadonlySet<string>>> = {
  deploy: new Set(['CREATE_COMPLETE', 'UPDATE_COMPLETE', 'IMPORT_COMPLETE']),
  delete: new Set(['DELETE_COMPLETE']),
};

/** null: the operation is still in progress. */
export function endingOf(operation: 'deploy' | 'delete', status: string): StackEnding | null {
  if (GOOD[operation].has(status)) return 'done';
  return status.endsWith('_IN_PROGRESS') ? null : 'failed';
}
