import { attribute, onlyIf, ref, type Resource, type Resources, substitute, type Value } from '../intrinsics.js';
import { ARCHIVE_PREFIX, KEY_POLICIES, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { assumedBy } from './roles.js';
import { allow, type Grant, policyDocument } from './statements.js';

/**
 * The permissions of the functions on the table. `tests/infra/policies.test.ts` compares them with the requests that
 * the code sends.
 */
const FUNCTION_GRANTS: Readonly<Record<'stream' | 'reconciler', readonly Grant[]>> = {
  stream: [{ sid: 'UseTable', actions: ['BatchGetItem', 'GetItem', 'PutItem', 'UpdateItem'], on: 'table' }],
  reconciler: [
    {
      sid: 'UseTable',
      actions: ['BatchGetItem', 'DeleteItem', 'GetItem', 'Query', 'UpdateItem'],
      on: 'table',
    },
    { sid: 'FindBuckets', actions: ['Query'], on: 'GSI1' },
  ],
};

/** The permissions that Lambda uses, with the function's role, to read the stream. */
const POLLING: readonly Grant[] = [
  { sid: 'ReadStream', actions: ['DescribeStream', 'GetRecords', 'GetShardIterator'], on: 'stream' },
  // This action does not support resource ARNs:
  // https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
  { sid: 'FindStream', actions: ['ListStreams'], on: 'anything' },
];

export function functionRoles(): Resources {
  return {
    [RESOURCES.streamRole]: lambdaRole(KEY_POLICIES.stream, [
      ...[...FUNCTION_GRANTS.stream, ...POLLING].map(allow),
      {
        Sid: 'Archive',
        Effect: 'Allow',
        Action: ['s3:PutObject'],
        Resource: [substitute(`\${${RESOURCES.archive}.Arn}/${ARCHIVE_PREFIX}*`)],
      },
      {
        Sid: 'GiveUp',
        Effect: 'Allow',
        Action: ['sqs:SendMessage'],
        Resource: [attribute(RESOURCES.deadLetters, 'Arn')],
      },
      writeLog(RESOURCES.streamLog),
    ]),
    [RESOURCES.reconcilerRole]: lambdaRole(KEY_POLICIES.use, [
      ...FUNCTION_GRANTS.reconciler.map(allow),
      writeLog(RESOURCES.reconcilerLog),
    ]),
  };
}

/** The ARN of a log group ends in `:*`, which matches its log streams. */
function writeLog(logGroup: string): Value {
  return {
    Sid: 'Log',
    Effect: 'Allow',
    Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
    Resource: [attribute(logGroup, 'Arn')],
  };
}

function lambdaRole(keyPolicy: string, statements: readonly Value[]): Resource {
  return {
    Type: 'AWS::IAM::Role',
    Properties: {
      ...assumedBy({ Service: 'lambda.amazonaws.com' }),
      ManagedPolicyArns: onlyIf(CONDITIONS.hasKmsKey, [ref(keyPolicy)]),
      Policies: [{ PolicyName: 'function', PolicyDocument: policyDocument(statements) }],
    },
  };
}
