import type { AwsAnswer, AwsRequest } from './aws-server.js';

/** Answers in the shapes and with the messages that AWS documents. */
export const STACK_ID = 'arn:aws:cloudformation:eu-west-1:123456789012:stack/headgate-pre/6f2b6a50';
export const CHANGE_SET_ID = 'arn:aws:cloudformation:eu-west-1:123456789012:changeSet/headgate-1/0f1e';
const AT = '2027-01-15T10:00:00.000Z';

/** The answers of each action, in order. The last one is repeated. */
export type Script = Readonly<Record<string, readonly AwsAnswer[]>>;

export function scripted(script: Script): (request: AwsRequest) => AwsAnswer {
  const asked: Record<string, number> = {};
  return ({ action }) => {
    const answers = script[action] ?? [];
    const at = asked[action] ?? 0;
    asked[action] = at + 1;
    return answers[Math.min(at, answers.length - 1)] ?? { error: 'NotScripted', message: `${action} is not scripted` };
  };
}

export const NO_STACK: AwsAnswer = {
  error: 'ValidationError',
  message: 'Stack with id headgate-pre does not exist',
};

const TAGS = [
  { Key: 'headgate:version', Value: '0.0.9' },
  { Key: 'headgate:env', Value: 'pre' },
];

export function stack(status: string, more: object = {}): AwsAnswer {
  return { result: { Stacks: [stackMember(status, more)] } };
}

export function stackMember(status: string, more: object = {}): object {
  return {
    StackId: STACK_ID,
    StackName: 'headgate-pre',
    CreationTime: AT,
    StackStatus: status,
    DisableRollback: false,
    Tags: TAGS,
    Parameters: [
      { ParameterKey: 'TableName', ParameterValue: 'headgate-pre' },
      { ParameterKey: 'LogRetentionDays', ParameterValue: '7' },
    ],
    Outputs: [{ OutputKey: 'TableName', OutputValue: 'headgate-pre' }],
    ...more,
  };
}

export const CREATED_CHANGE_SET: AwsAnswer = { result: { Id: CHANGE_SET_ID, StackId: STACK_ID } };

export function changeSet(status: string, more: object = {}): AwsAnswer {
  return { result: { ChangeSetId: CHANGE_SET_ID, StackId: STACK_ID, Status: status, ...more } };
}

export function changes(...rows: readonly (readonly [action: string, id: string, type: string, replaced?: string])[]) {
  return {
    ExecutionStatus: 'AVAILABLE',
    Changes: rows.map(([Action, LogicalResourceId, ResourceType, Replacement]) => ({
      Type: 'Resource',
      ResourceChange: { Action, LogicalResourceId, ResourceType, Replacement, PhysicalResourceId: LogicalResourceId },
    })),
  };
}

export const DONE: AwsAnswer = { result: {} };

type EventRow = readonly [status: string, logicalId: string | null, reason?: string];

/** The events in their order; the answer has the newest first. A row without a logical id is about the stack. */
export function events(...rows: readonly EventRow[]): AwsAnswer {
  const members = rows.map(([ResourceStatus, id, ResourceStatusReason], at) => ({
    StackId: STACK_ID,
    EventId: `event-${at}`,
    StackName: 'headgate-pre',
    LogicalResourceId: id ?? 'headgate-pre',
    PhysicalResourceId: id === null ? STACK_ID : `pre-${id}`,
    ResourceType: id === null ? 'AWS::CloudFormation::Stack' : `AWS::Test::${id}`,
    Timestamp: AT,
    ResourceStatus,
    ResourceStatusReason,
  }));
  return { result: { StackEvents: members.toReversed() } };
}

export function resources(...rows: readonly (readonly [logicalId: string, physicalId: string])[]): AwsAnswer {
  return {
    result: {
      StackResourceSummaries: rows.map(([LogicalResourceId, PhysicalResourceId]) => ({
        LogicalResourceId,
        PhysicalResourceId,
        ResourceType: 'AWS::Test::Any',
        LastUpdatedTimestamp: AT,
        ResourceStatus: 'CREATE_COMPLETE',
      })),
    },
  };
}

export function lambda(sha256: string, update = 'Successful', more: object = {}): AwsAnswer {
  return {
    result: {
      FunctionName: 'f',
      CodeSha256: sha256,
      State: 'Active',
      LastUpdateStatus: update,
      Runtime: 'nodejs22.x',
      ...more,
    },
  };
}
