import { InfrastructureError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { PARAMETERS, RESOURCES } from '../template/names.js';
import type { ChangeSetRequest, Stack } from './cloudformation.js';
import type { ImportTemplate } from './import-template.js';
import { chooseParameters } from './parameters.js';
import type { StackNames } from './stack-name.js';
import { ENV_TAG, isEmptyShell, VERSION_TAG } from './stack-status.js';

/**
 * The limit of CloudFormation for a template in a request. A larger template would need an S3 bucket, and none exists
 * yet.
 */
export const MAX_TEMPLATE_BYTES = 51_200;

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
