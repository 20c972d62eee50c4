import { InfrastructureError, ValidationError } from '../../../core/errors.js';
import type { Template } from '../../template.js';
import { PARAMETERS, RESOURCES } from '../../template/names.js';
import type { StackNames } from '../stack-name.js';
import { ENV_TAG, isEmptyShell, VERSION_TAG } from '../status/stack-status.js';
import type { ResourceChange, ChangeSet, ChangeSetRequest, Stack, StackParameter } from '../stack-tools.js';
import type { ImportTemplate } from '../table/table-facts.js';

export type ChangeSetState =
  | { readonly kind: 'pending' }
  | { readonly kind: 'ready'; readonly changes: readonly ResourceChange[] }
  /** No changes. CloudFormation reports this as a failure. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'failed'; readonly reason: string };

/** CloudFormation has two texts for "no changes". */
const NOTHING_TO_DO = /didn't contain changes|No updates are to be performed/i;

export function changeSetStateOf({ status, reason, changes }: ChangeSet): ChangeSetState {
  if (status === 'CREATE_COMPLETE') return { kind: 'ready', changes };
  if (status === 'CREATE_PENDING' || status === 'CREATE_IN_PROGRESS') return { kind: 'pending' };
  if (status === 'FAILED' && reason !== null && saysNothingToDo(reason)) return { kind: 'empty' };
  return { kind: 'failed', reason: reason ?? `the change set is ${status}` };
}

export function saysNothingToDo(reason: string): boolean {
  return NOTHING_TO_DO.test(reason);
}

/** Only tags change. `deploy` adds its tags to a stack that a user deployed from the printed template. */
export function isTagOnly({ action, replacement, scope }: ResourceChange): boolean {
  return action === 'Modify' && replacement === 'no' && scope.length > 0 && scope.every((part) => part === 'Tags');
}

/** Resource types whose data cannot be restored. */
const HOLDS_DATA = new Set(['AWS::DynamoDB::Table', 'AWS::DynamoDB::GlobalTable', 'AWS::S3::Bucket']);

/** Changes after which the stack would have a new, empty table or archive. */
export function dataLosses<C extends Omit<ResourceChange, 'scope'>>(changes: readonly C[]): readonly C[] {
  return changes.filter(
    ({ action, type, replacement }) =>
      HOLDS_DATA.has(type) && (action === 'Remove' || replacement === 'yes' || replacement === 'conditional'),
  );
}

/**
 * The limit of CloudFormation for a template in a request. A larger template would need an S3 bucket, and none exists
 * yet.
 */
const MAX_TEMPLATE_BYTES = 51_200;

interface Wanted {
  readonly names: StackNames;
  readonly template: Template;
  readonly version: string;
  readonly given: Readonly<Record<string, string>>;
}

/** Builds the request for a change set that brings `stack` to the template. null: there is no stack yet. */
export function buildChangeSetRequest(
  { names, template, version, given }: Wanted,
  stack: Stack | null,
  name: string,
): ChangeSetRequest {
  const existing = stack === null || isEmptyShell(stack) ? null : stack;
  // Also set for a stack without parameters: the default names another table.
  const isNamed = existing !== null && PARAMETERS.tableName in existing.parameters;
  const tableName = isNamed ? {} : { [PARAMETERS.tableName]: names.table };
  return {
    stack: names.stack,
    name,
    type: existing === null ? 'CREATE' : 'UPDATE',
    template: templateBody(template),
    parameters: chooseParameters(template, existing, { ...given, ...tableName }),
    // CloudFormation removes the tags that a request does not send. Resend the tags that other tools set.
    tags: tagsFor(existing, names, version),
  };
}

/** Builds the request for a change set that imports an existing table into `stack`. null: there is no stack yet. */
export function buildImportRequest(
  { names, version }: Pick<Wanted, 'names' | 'version'>,
  { template, parameters }: ImportTemplate,
  stack: Stack | null,
  name: string,
): ChangeSetRequest {
  const existing = stack === null || isEmptyShell(stack) ? null : stack;
  return {
    stack: names.stack,
    name,
    type: 'IMPORT',
    template: templateBody(template),
    parameters: Object.entries(parameters).map(([parameter, value]) => ({ name: parameter, value })),
    tags: tagsFor(existing, names, version),
    imports: {
      [RESOURCES.table]: { type: 'AWS::DynamoDB::Table', identifier: { TableName: names.table } },
    },
  };
}

function tagsFor(existing: Stack | null, { env }: StackNames, version: string): Readonly<Record<string, string>> {
  return { ...existing?.tags, [VERSION_TAG]: version, ...(env === null ? {} : { [ENV_TAG]: env }) };
}

function templateBody(template: object): string {
  const body = JSON.stringify(template);
  const bytes = Buffer.byteLength(body);
  if (bytes <= MAX_TEMPLATE_BYTES) return body;
  const message = `The template has ${bytes} bytes, CloudFormation takes ${MAX_TEMPLATE_BYTES} without a bucket`;
  throw new InfrastructureError('infrastructure.template-too-large', message);
}

/** Parses `Name=Value`. The value may be empty and may contain "=". */
export function parseParameters(given: readonly string[], template: Template): Readonly<Record<string, string>> {
  const parsed = given.map((text) => {
    const cut = text.indexOf('=');
    const name = cut < 0 ? text : text.slice(0, cut);
    if (cut < 1) throw new ValidationError('--param', 'Name=Value', text);
    checkName(name, template);
    return [name, text.slice(cut + 1)] as const;
  });
  return Object.fromEntries(parsed);
}

function checkName(name: string, { Parameters }: Template): void {
  if (name === PARAMETERS.tableName) {
    throw new ValidationError(
      '--param',
      'a parameter other than the name of the table, which --env or --table sets',
      name,
    );
  }
  if (!Object.hasOwn(Parameters, name)) {
    throw new ValidationError('--param', `one of ${Object.keys(Parameters).join(', ')}`, name);
  }
}

/**
 * The parameters of a change set: the given values, and the previous values of the other parameters that the stack has.
 * A parameter that the stack does not have yet is not sent, so it gets the template's default.
 */
function chooseParameters(
  template: Template,
  stack: Stack | null,
  given: Readonly<Record<string, string>>,
): readonly StackParameter[] {
  return Object.keys(template.Parameters).flatMap((name): readonly StackParameter[] => {
    const value = given[name];
    if (value !== undefined) return [{ name, value }];
    return stack !== null && Object.hasOwn(stack.parameters, name) ? [{ name, previous: true }] : [];
  });
}
