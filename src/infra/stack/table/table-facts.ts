import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { INDEXES, tableDefinition, TTL_ATTRIBUTE } from '../../../backends/dynamodb/table/table-definition.js';
import type { Template } from '../../template.js';
import { ref, type Resource, type Value } from '../../template/intrinsics.js';
import { PARAMETERS, RESOURCES } from '../../template/names.js';
import { parameters } from '../../template/parameters.js';
import { PROJECTION_PARAMETERS, table } from '../../template/storage/table.js';

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

export function tableFactsOf(description: TableDescription, settings: Settings): TableFacts {
  const { StreamSpecification: stream, SSEDescription: encryption } = description;
  return {
    ...settings,
    name: description.TableName ?? '',
    status: description.TableStatus ?? '',
    keys: keysOf(description.KeySchema),
    attributeTypes: Object.fromEntries(
      (description.AttributeDefinitions ?? []).map(({ AttributeName = '', AttributeType = '' }) => [
        AttributeName,
        AttributeType,
      ]),
    ),
    indexes: Object.fromEntries(
      (description.GlobalSecondaryIndexes ?? []).map(({ IndexName = '', KeySchema, Projection }) => [
        IndexName,
        { keys: keysOf(KeySchema), projection: Projection?.ProjectionType ?? 'ALL' },
      ]),
    ),
    localIndexes: (description.LocalSecondaryIndexes ?? []).map(({ IndexName = '' }) => IndexName),
    stream: stream?.StreamEnabled === true ? (stream.StreamViewType ?? '') : null,
    // DescribeTable has no billing mode for a table that was never billed on demand.
    billingMode: description.BillingModeSummary?.BillingMode ?? 'PROVISIONED',
    replicas: (description.Replicas ?? []).map(({ RegionName = '' }) => RegionName),
    deletionProtection: description.DeletionProtectionEnabled ?? false,
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

/** A template with only an existing table, and the parameters that describe the table. */
export interface ImportTemplate {
  readonly template: Omit<Template, 'Conditions' | 'Outputs'>;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Describes the table as it is. CloudFormation compares templates, not tables: the update after the import finds the
 * differences from the full template and applies them. An import allows no outputs and no resource that is not
 * imported.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-manually.html
 */
export function buildImportTemplate(facts: TableFacts): ImportTemplate {
  const chosen: Readonly<Record<string, string>> = {
    [PARAMETERS.tableName]: facts.name,
    ...Object.fromEntries(
      Object.entries(PROJECTION_PARAMETERS).map(([index, parameter]) => [
        parameter,
        facts.indexes[index]?.projection ?? 'KEYS_ONLY',
      ]),
    ),
    ...(facts.kmsKeyArn === null ? {} : { [PARAMETERS.kmsKeyArn]: facts.kmsKeyArn }),
  };
  const known = parameters();
  const used = Object.keys(chosen).flatMap((name) => {
    const parameter = known[name];
    return parameter === undefined ? [] : [[name, parameter] as const];
  });
  return {
    parameters: chosen,
    template: {
      AWSTemplateFormatVersion: '2010-09-09',
      Description: 'Headgate: a table that exists, before the rest of its stack is added',
      Metadata: { Headgate: { Template: 1 } },
      Parameters: Object.fromEntries(used),
      Resources: { [RESOURCES.table]: currentTable(facts) },
    },
  };
}

function currentTable({ pointInTimeRecovery, deletionProtection, kmsKeyArn }: TableFacts): Resource {
  const { [RESOURCES.table]: whole } = table();
  if (whole === undefined) throw new TypeError('the template has no table');
  const { SSESpecification: _, ...properties } = whole.Properties;
  const key: Value = { SSEEnabled: true, SSEType: 'KMS', KMSMasterKeyId: ref(PARAMETERS.kmsKeyArn) };
  return {
    ...whole,
    Properties: {
      ...properties,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: pointInTimeRecovery },
      DeletionProtectionEnabled: deletionProtection,
      ...(kmsKeyArn === null ? {} : { SSESpecification: key }),
    },
  };
}
