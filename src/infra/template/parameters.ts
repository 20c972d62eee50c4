import { equals, not, type Parameter, ref, type Value } from './intrinsics.js';
import { PARAMETERS } from './names.js';

const YES_NO = ['true', 'false'] as const;

/** No reservation: 0 would stop the function. */
const NO_CONCURRENCY = -1;

/** The retention periods that CloudWatch Logs accepts. */
const LOG_DAYS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

const ARN_OR_NOTHING = '^$|^arn:[^\\s]+$';
const KEY_ARN_OR_NOTHING = '^$|^arn:[^\\s:]+:kms:[^\\s]+:key/[^\\s]+$';

/** The projections that an index may have. A table of an older layout may have ALL; new tables have KEYS_ONLY. */
const PROJECTIONS = ['KEYS_ONLY', 'ALL'] as const;

export function parameters(): Readonly<Record<string, Parameter>> {
  return {
    [PARAMETERS.tableName]: {
      Type: 'String',
      Default: 'headgate',
      Description: 'Name of the DynamoDB table.',
      AllowedPattern: '^[a-zA-Z0-9_.-]{3,255}$',
      ConstraintDescription: 'must be 3 to 255 letters, digits, "_", "." or "-"',
    },
    [PARAMETERS.pointInTimeRecovery]: yesNo('true', 'Whether the table can be restored to any second of 35 days.'),
    [PARAMETERS.deletionProtection]: yesNo('true', 'Whether DynamoDB refuses to delete the table.'),
    [PARAMETERS.kmsKeyArn]: {
      Type: 'String',
      Default: '',
      Description:
        'KMS key for table, archive, queue, topic, logs and functions; empty: keys of AWS, and for the topic a key of the stack.',
      AllowedPattern: KEY_ARN_OR_NOTHING,
      ConstraintDescription: 'must be the ARN of a KMS key (not of an alias), or empty',
    },
    [PARAMETERS.gsi1Projection]: projection('GSI1'),
    [PARAMETERS.gsi2Projection]: projection('GSI2'),
    [PARAMETERS.streamBatchWindowSec]: {
      Type: 'Number',
      Default: 5,
      MinValue: 0,
      MaxValue: 300,
      Description: 'How long Lambda waits for 100 changes before it counts fewer: longer costs fewer writes.',
    },
    [PARAMETERS.streamMemoryMb]: memory('Memory of the function on the stream, in MB.'),
    [PARAMETERS.streamConcurrency]: {
      Type: 'Number',
      Default: NO_CONCURRENCY,
      MinValue: NO_CONCURRENCY,
      Description: 'Concurrency reserved for the function on the stream; -1 reserves none.',
    },
    [PARAMETERS.reconcilerSchedule]: {
      Type: 'String',
      Default: 'rate(5 minutes)',
      Description: 'When the reconciler runs: rate(...) or cron(...).',
      AllowedPattern: '^(rate|cron)\\(.+\\)$',
      ConstraintDescription: 'must be rate(...) or cron(...)',
    },
    [PARAMETERS.reconcilerMemoryMb]: memory('Memory of the reconciler, in MB.'),
    [PARAMETERS.logRetentionDays]: {
      Type: 'Number',
      Default: 30,
      AllowedValues: LOG_DAYS,
      Description: 'How many days the logs of the functions are kept.',
    },
    [PARAMETERS.archiveDays]: {
      Type: 'Number',
      Default: 0,
      MinValue: 0,
      Description: 'How many days archived audit records are kept; 0 keeps them for ever.',
    },
    [PARAMETERS.alarmEmail]: {
      Type: 'String',
      Default: '',
      Description: 'Mail address for alarms; empty: no mail until the topic gets a subscription.',
      AllowedPattern: '^$|^[^@\\s]+@[^@\\s]+$',
      ConstraintDescription: 'must be a mail address, or empty',
    },
    [PARAMETERS.namespaceId]: {
      Type: 'String',
      Default: '',
      Description:
        'Namespace id of the scoped policies; empty: the headgate-namespace tag of the caller, so that one policy serves all tenants.',
      AllowedPattern: '^$|^[A-Za-z0-9_-]{11}$',
      ConstraintDescription: 'must be the 11 characters of a namespace id (not its name), or empty',
    },
    [PARAMETERS.createRoles]: yesNo('false', 'Whether to make roles with the policies, for apps to assume.'),
    [PARAMETERS.rolePrincipalArn]: {
      Type: 'String',
      Default: '',
      Description: 'Who may assume the roles; empty: the principals that this account allows.',
      AllowedPattern: ARN_OR_NOTHING,
      ConstraintDescription: 'must be an ARN, or empty',
    },
    [PARAMETERS.permissionsBoundaryArn]: {
      Type: 'String',
      Default: '',
      Description: 'Permissions boundary of every role of the stack; empty: none.',
      AllowedPattern: ARN_OR_NOTHING,
      ConstraintDescription: 'must be an ARN, or empty',
    },
  };
}

export const CONDITIONS = {
  reservesConcurrency: 'ReservesConcurrency',
  archiveExpires: 'ArchiveExpires',
  hasKmsKey: 'HasKmsKey',
  makesAlarmKey: 'MakesAlarmKey',
  hasAlarmEmail: 'HasAlarmEmail',
  hasNamespaceId: 'HasNamespaceId',
  createsRoles: 'CreatesRoles',
  hasRolePrincipal: 'HasRolePrincipal',
  hasBoundary: 'HasBoundary',
} as const;

export function conditions(): Readonly<Record<string, Value>> {
  return {
    [CONDITIONS.reservesConcurrency]: differs(PARAMETERS.streamConcurrency, String(NO_CONCURRENCY)),
    [CONDITIONS.archiveExpires]: differs(PARAMETERS.archiveDays, '0'),
    [CONDITIONS.hasKmsKey]: differs(PARAMETERS.kmsKeyArn, ''),
    [CONDITIONS.makesAlarmKey]: equals(ref(PARAMETERS.kmsKeyArn), ''),
    [CONDITIONS.hasAlarmEmail]: differs(PARAMETERS.alarmEmail, ''),
    [CONDITIONS.hasNamespaceId]: differs(PARAMETERS.namespaceId, ''),
    [CONDITIONS.createsRoles]: equals(ref(PARAMETERS.createRoles), 'true'),
    [CONDITIONS.hasRolePrincipal]: differs(PARAMETERS.rolePrincipalArn, ''),
    [CONDITIONS.hasBoundary]: differs(PARAMETERS.permissionsBoundaryArn, ''),
  };
}

function differs(parameter: string, from: string): Value {
  return not(equals(ref(parameter), from));
}

function yesNo(value: (typeof YES_NO)[number], description: string): Parameter {
  return { Type: 'String', Default: value, AllowedValues: YES_NO, Description: description };
}

function projection(index: string): Parameter {
  return {
    Type: 'String',
    Default: 'KEYS_ONLY',
    AllowedValues: PROJECTIONS,
    Description: `What ${index} of the table holds. ALL only for an adopted table: DynamoDB changes no index in place.`,
  };
}

function memory(description: string): Parameter {
  return { Type: 'Number', Default: 256, MinValue: 128, MaxValue: 10_240, Description: description };
}
