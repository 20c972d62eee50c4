import { INDEXES } from '../../../backends/dynamodb/table/table-definition.js';
import { attribute, substitute, type Value } from '../intrinsics.js';
import { RESOURCES } from '../names.js';

/** One permission of a policy. Actions are DynamoDB's, without the prefix. */
export interface Grant {
  readonly sid: string;
  readonly actions: readonly string[];
  readonly on: 'table' | 'indexes' | (typeof INDEXES)[number] | 'stream' | 'anything';
  /** Patterns for the partition keys of a request: each key must match one. Missing: any key. */
  readonly keys?: readonly Value[];
  /** Patterns that no partition key of a request may match. */
  readonly notKeys?: readonly Value[];
}

function resourcesOf(on: Grant['on']): readonly Value[] {
  switch (on) {
    case 'table':
      return [attribute(RESOURCES.table, 'Arn')];
    case 'indexes':
      return INDEXES.flatMap(resourcesOf);
    case 'stream':
      return [attribute(RESOURCES.table, 'StreamArn')];
    case 'anything':
      return ['*'];
    case 'GSI1':
    case 'GSI2':
    case 'GSI3':
    case 'GSI4':
      return [substitute(`\${${RESOURCES.table}.Arn}/index/${on}`)];
  }
}

export function allow({ sid, actions, on, keys, notKeys }: Grant): Value {
  return {
    Sid: sid,
    Effect: 'Allow',
    Action: actions.map((action) => `dynamodb:${action}`),
    Resource: resourcesOf(on),
    ...(keys === undefined ? {} : { Condition: leadingKeys(keys, notKeys) }),
  };
}

/** Denies requests without TLS. For resource policies. */
export function overTlsOnly(action: string, resources: readonly Value[]): Value {
  return {
    Sid: 'OnlyOverTls',
    Effect: 'Deny',
    Principal: '*',
    Action: action,
    Resource: resources,
    Condition: { Bool: { 'aws:SecureTransport': 'false' } },
  };
}

export function policyDocument(statements: readonly Value[]): Value {
  return { Version: '2012-10-17', Statement: statements };
}

/**
 * `ForAllValues` is true for a request without keys; `Null` denies those.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
 */
function leadingKeys(like: readonly Value[], notLike: readonly Value[] = []): Value {
  return {
    'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': like },
    ...(notLike.length === 0 ? {} : { 'ForAllValues:StringNotLike': { 'dynamodb:LeadingKeys': notLike } }),
    Null: { 'dynamodb:LeadingKeys': 'false' },
  };
}
