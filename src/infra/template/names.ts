/** Logical ids of the two functions, whose code `headgate deploy` uploads. */
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

/** What can be chosen for a stack. All have a default. */
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

/** Logical ids of the policies, for who uses every namespace, and for a tenant. */
export const POLICIES = {
  acquire: 'AcquirePolicy',
  readOnly: 'ReadOnlyPolicy',
  full: 'FullPolicy',
  namespaceAcquire: 'NamespaceAcquirePolicy',
  namespaceReadOnly: 'NamespaceReadOnlyPolicy',
  namespaceFull: 'NamespaceFullPolicy',
} as const;

/** Logical ids of what a stack with a KMS key has besides: for everyone who uses the table, and for the function on the stream. */
export const KEY_POLICIES = { use: 'KeyPolicy', stream: 'StreamKeyPolicy' } as const;

/** Logical ids of the roles that are made if somebody asks for them. */
export const ROLES = { acquire: 'AcquireRole', readOnly: 'ReadOnlyRole', full: 'FullRole' } as const;

/** The tag of a tenant's role that holds the id of its namespace. */
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

/** The file inside the zip of a function's code, and where Lambda looks for the handler in it. */
export const CODE_ENTRY = 'index.cjs';
export const HANDLER = 'index.handler';
