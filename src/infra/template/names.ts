/** Logical ids of the two functions. `headgate deploy` uploads their code. */
export const FUNCTIONS = { stream: 'StreamFunction', reconciler: 'ReconcilerFunction' } as const;

/** Logical ids that other parts of the template refer to. */
export const RESOURCES = {
  table: 'Table',
  archive: 'ArchiveBucket',
  deadLetters: 'StreamDeadLetters',
  alarms: 'AlarmTopic',
  alarmKey: 'AlarmKey',
  streamLog: 'StreamLog',
  reconcilerLog: 'ReconcilerLog',
  streamRole: 'StreamRole',
  reconcilerRole: 'ReconcilerRole',
} as const;

/** The parameters of a stack. All have a default. */
export const PARAMETERS = {
  tableName: 'TableName',
  pointInTimeRecovery: 'PointInTimeRecovery',
  deletionProtection: 'DeletionProtection',
  kmsKeyArn: 'KmsKeyArn',
  gsi1Projection: 'Gsi1Projection',
  gsi2Projection: 'Gsi2Projection',
  streamBatchWindowSec: 'StreamBatchWindowSeconds',
  streamMemoryMb: 'StreamMemoryMB',
  streamConcurrency: 'StreamReservedConcurrency',
  reconcilerSchedule: 'ReconcilerSchedule',
  reconcilerMemoryMb: 'ReconcilerMemoryMB',
  logRetentionDays: 'LogRetentionDays',
  archiveDays: 'ArchiveDays',
  alarmEmail: 'AlarmEmail',
  namespaceId: 'NamespaceId',
  createRoles: 'CreateRoles',
  rolePrincipalArn: 'RolePrincipalArn',
  permissionsBoundaryArn: 'PermissionsBoundaryArn',
} as const;

/** Logical ids of the policies: for all namespaces, and for one tenant. */
export const POLICIES = {
  acquire: 'AcquirePolicy',
  readOnly: 'ReadOnlyPolicy',
  full: 'FullPolicy',
  namespaceAcquire: 'NamespaceAcquirePolicy',
  namespaceReadOnly: 'NamespaceReadOnlyPolicy',
  namespaceFull: 'NamespaceFullPolicy',
} as const;

/**
 * Logical ids of the extra policies of a stack with a KMS key: for every user of the table, and for the stream
 * function.
 */
export const KEY_POLICIES = { use: 'KeyPolicy', stream: 'StreamKeyPolicy' } as const;

/** Logical ids of the optional roles. */
export const ROLES = { acquire: 'AcquireRole', readOnly: 'ReadOnlyRole', full: 'FullRole' } as const;

/** The tag on a tenant's role that has the id of its namespace. */
export const NAMESPACE_TAG = 'headgate-namespace';

export const OUTPUTS = {
  tableName: 'TableName',
  tableArn: 'TableArn',
  streamArn: 'StreamArn',
  streamFunctionName: 'StreamFunctionName',
  reconcilerFunctionName: 'ReconcilerFunctionName',
  archiveBucketName: 'ArchiveBucketName',
  alarmTopicArn: 'AlarmTopicArn',
  deadLetterQueueUrl: 'DeadLetterQueueUrl',
  dashboardName: 'DashboardName',
} as const;

/** The file name inside the zip of a function, and the matching handler setting of Lambda. */
export const CODE_ENTRY = 'index.cjs';
export const HANDLER = 'index.handler';

/** The key prefix of archived audit records. */
export const ARCHIVE_PREFIX = 'audit/';
