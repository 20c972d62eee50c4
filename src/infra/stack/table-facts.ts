import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { INDEXES, tableDefinition, TTL_ATTRIBUTE } from '../../backends/dynamodb/table/table-definition.js';
import { PARAMETERS } from '../template/names.js';
import { PROJECTION_PARAMETERS } from '../template/table.js';

/** The properties of an existing table that matter to a stack. */
export interface TableFacts {
  readonly name: string;
  /** `ACTIVE`, `UPDATING`, ... */
  readonly status: string;
  /** Names of the key attributes, in order: `PK SK`. */
  readonly keys: string;
  readonly attributeTypes: Readonly<Record<string, string>>;
  readonly indexes: Readonly<Record<string, IndexFacts>>;
  readonly localIndexes: readonly string[];
  /** `NEW_AND_OLD_IMAGES`, ...; null: it has no stream. */
  readonly stream: string | null;
  /** null: TTL is off. */
  readonly ttlAttribute: string | null;
  readonly billingMode: string;
  readonly replicas: readonly string[];
  readonly pointInTimeRecovery: boolean;
  readonly deletionProtection: boolean;
  /** null: DynamoDB's own key. */
  readonly kmsKeyArn: string | null;
}

export interface IndexFacts {
  readonly keys: string;
  readonly projection: string;
}

interface Settings {
  readonly ttlAttribute: string | null;
  readonly pointInTimeRecovery: boolean;
}

export function tableFactsOf(table: TableDescription, settings: Settings): TableFacts {
  const { StreamSpecification: stream, SSEDescription: encryption } = table;
  return {
    ...settings,
    name: table.TableName ?? '',
    status: table.TableStatus ?? '',
    keys: keysOf(table.KeySchema),
    attributeTypes: Object.fromEntries(
      (table.AttributeDefinitions ?? []).map(({ AttributeName = '', AttributeType = '' }) => [
        AttributeName,
        AttributeType,
      ]),
    ),
    indexes: Object.fromEntries(
      (table.GlobalSecondaryIndexes ?? []).map(({ IndexName = '', KeySchema, Projection }) => [
        IndexName,
        { keys: keysOf(KeySchema), projection: Projection?.ProjectionType ?? 'ALL' },
      ]),
    ),
    localIndexes: (table.LocalSecondaryIndexes ?? []).map(({ IndexName = '' }) => IndexName),
    stream: stream?.StreamEnabled === true ? (stream.StreamViewType ?? '') : null,
    // DescribeTable has no billing mode for a table that was never billed on demand.
    billingMode: table.BillingModeSummary?.BillingMode ?? 'PROVISIONED',
    replicas: (table.Replicas ?? []).map(({ RegionName = '' }) => RegionName),
    deletionProtection: table.DeletionProtectionEnabled ?? false,
    kmsKeyArn: encryption?.Status === 'DISABLED' ? null : (encryption?.KMSMasterKeyArn ?? null),
  };
}

function keysOf(schema: TableDescription['KeySchema'] = []): string {
  return schema.map(({ AttributeName = '' }) => AttributeName).join(' ');
}

/**
 * Why the table does not fit the template: one sentence per difference, with a remedy where there is one. Settings that
 * an update of the stack changes in place (recovery, protection) are not included. `given` are the parameters of the
 * deployment.
 */
export function differencesOf(facts: TableFacts, given: Readonly<Record<string, string>>): readonly string[] {
  const update = `aws dynamodb update-table --table-name ${facts.name}`;
  const { StreamSpecification } = tableDefinition('');
  const view = String(StreamSpecification?.StreamViewType);
  return [
    ...(facts.keys === 'PK SK' ? [] : [`its keys are ${facts.keys}, not PK SK: it does not belong to Headgate`]),
    ...INDEXES.flatMap((name) => indexDifferences(name, facts)),
    ...Object.keys(facts.indexes)
      .filter((name) => !(INDEXES as readonly string[]).includes(name))
      .map((name) => `it has an index ${name}, which the stack would remove: delete it first`),
    ...facts.localIndexes.map((name) => `it has a local index ${name}, which Headgate's template does not have`),
    ...Object.entries(facts.attributeTypes)
      .filter(([, type]) => type !== 'S')
      .map(([name, type]) => `its key attribute ${name} is of type ${type}, not S`),
    ...(facts.stream === view ? [] : [streamDifference(facts.stream, view, update)]),
    ...(facts.ttlAttribute === TTL_ATTRIBUTE ? [] : [ttlDifference(facts)]),
    ...(facts.billingMode === 'PAY_PER_REQUEST'
      ? []
      : [`it is billed as ${facts.billingMode}: ${update} --billing-mode PAY_PER_REQUEST`]),
    ...(facts.replicas.length === 0
      ? []
      : [`it has replicas (${facts.replicas.join(', ')}), which the stack does not support`]),
    ...(facts.kmsKeyArn === null || PARAMETERS.kmsKeyArn in given
      ? []
      : [`it is encrypted with ${facts.kmsKeyArn}: pass --param ${PARAMETERS.kmsKeyArn}=${facts.kmsKeyArn}`]),
    ...(facts.status === 'ACTIVE' ? [] : [`it is ${facts.status}: wait until it is ACTIVE`]),
  ];
}

function indexDifferences(name: string, { indexes }: TableFacts): readonly string[] {
  const index = indexes[name];
  const wanted = `${name}PK ${name}SK`;
  if (index === undefined) return [`it has no index ${name}: add it, with the keys ${wanted} and KEYS_ONLY`];
  if (index.keys !== wanted) return [`its index ${name} has the keys ${index.keys}, not ${wanted}`];
  const allowed = name in PROJECTION_PARAMETERS ? ['KEYS_ONLY', 'ALL'] : ['KEYS_ONLY'];
  if (allowed.includes(index.projection)) return [];
  return [`its index ${name} projects ${index.projection}, not ${allowed.join(' or ')}: delete it and add it again`];
}

function streamDifference(stream: string | null, wanted: string, update: string): string {
  const enable = `${update} --stream-specification StreamEnabled=true,StreamViewType=${wanted}`;
  if (stream === null) return `it has no stream: ${enable}`;
  return `its stream has ${stream}, not ${wanted}: ${update} --stream-specification StreamEnabled=false, then ${enable}`;
}

function ttlDifference({ name, ttlAttribute }: TableFacts): string {
  const enable = `aws dynamodb update-time-to-live --table-name ${name} --time-to-live-specification Enabled=true,AttributeName=${TTL_ATTRIBUTE}`;
  return ttlAttribute === null
    ? `its records do not expire: ${enable}`
    : `its records expire by ${ttlAttribute}, not ${TTL_ATTRIBUTE}: disable that, wait an hour, then ${enable}`;
}
