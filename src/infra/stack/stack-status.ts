import { OUTPUTS } from '../template/names.js';
import type { Stack } from './cloudformation.js';

/** Every stack of Headgate carries it: `list` finds them by it. */
export const VERSION_TAG = 'headgate:version';
export const ENV_TAG = 'headgate:env';

/** What can be done with a stack, by the state that it is in. */
export type DeployDecision =
  | { readonly kind: 'create' }
  | { readonly kind: 'update' }
  /** Something is under way: look again when it has ended. */
  | { readonly kind: 'wait' }
  /** `hint` says what has to be done first; `failed`: the stack's own events say why. */
  | { readonly kind: 'refuse'; readonly why: string; readonly hint: string; readonly failed: boolean };

const UPDATABLE = new Set([
  'CREATE_COMPLETE',
  'UPDATE_COMPLETE',
  'UPDATE_ROLLBACK_COMPLETE',
  'UPDATE_FAILED',
  'IMPORT_COMPLETE',
  'IMPORT_ROLLBACK_COMPLETE',
]);

/** Its first creation failed, so that CloudFormation lets it only be deleted. */
const NEVER_MADE = new Set(['CREATE_FAILED', 'ROLLBACK_COMPLETE', 'ROLLBACK_FAILED']);

/** `REVIEW_IN_PROGRESS`: an empty shell that a change set has, which nobody executed. */
const EMPTY = 'REVIEW_IN_PROGRESS';

/** `flag` is what makes a command mean this stack: ` --env pre`. */
export function decideDeploy(stack: Stack | null, flag: string): DeployDecision {
  if (stack === null || stack.status === EMPTY || stack.status === 'DELETE_COMPLETE') return { kind: 'create' };
  const { name, status } = stack;
  if (!isHeadgates(stack)) {
    return { kind: 'refuse', why: foreignText(name), hint: 'choose another name by --env or --table', failed: false };
  }
  if (isUnderWay(status)) return { kind: 'wait' };
  if (UPDATABLE.has(status)) return { kind: 'update' };
  return { kind: 'refuse', why: `Stack ${name} is ${status}`, hint: hintFor(status, name, flag), failed: true };
}

function hintFor(status: string, name: string, flag: string): string {
  if (NEVER_MADE.has(status)) return `It was never made: run headgate delete${flag}, then deploy again`;
  if (status === 'DELETE_FAILED') return `Delete what it names, then run headgate delete${flag}`;
  return `Run: aws cloudformation continue-update-rollback --stack-name ${name}`;
}

/** Whether CloudFormation is at work on it. */
export function isUnderWay(status: string): boolean {
  return status.endsWith('_IN_PROGRESS') && status !== EMPTY;
}

/** Nothing was ever made in it. */
export function isEmptyShell({ status }: Stack): boolean {
  return status === EMPTY;
}

/** A failure has no outputs, and what was deployed by hand has no tags: one of them is enough. */
export function isHeadgates({ tags, outputs }: Stack): boolean {
  if (VERSION_TAG in tags) return true;
  return OUTPUTS.tableArn in outputs && OUTPUTS.streamFunctionName in outputs;
}

export function foreignText(name: string): string {
  return `Stack ${name} is not one of Headgate's: it has neither the tag ${VERSION_TAG} nor Headgate's outputs`;
}

/** Whether the last operation on the stack failed, also where it was rolled back: then it is not what was asked for. */
export function hasFailed(status: string): boolean {
  return !isUnderWay(status) && (status.endsWith('_FAILED') || status.includes('ROLLBACK'));
}

/** How an operation that has ended went. */
export type Ending = 'done' | 'failed';

const GOOD: Readonly<Record<'deploy' | 'delete', ReadonlySet<string>>> = {
  deploy: new Set(['CREATE_COMPLETE', 'UPDATE_COMPLETE', 'IMPORT_COMPLETE']),
  delete: new Set(['DELETE_COMPLETE']),
};

/** null: it goes on. */
export function endingOf(operation: 'deploy' | 'delete', status: string): Ending | null {
  if (GOOD[operation].has(status)) return 'done';
  return status.endsWith('_IN_PROGRESS') ? null : 'failed';
}
