import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { tableDefinition } from '../../../backends/dynamodb/table/table-definition.js';
import { buildImportTemplate, differencesOf, tableFactsOf } from './table-facts.js';

const KEY = 'arn:aws:kms:eu-west-1:1:key/1';
const { BillingMode, ...DEFINITION } = tableDefinition('limits');
const DESCRIBED = {
  ...DEFINITION,
  TableStatus: 'ACTIVE',
  BillingModeSummary: { BillingMode },
} as TableDescription;
const SETTINGS = { ttlAttribute: 'ttl', pointInTimeRecovery: false };

const factsOf = (
  parts: Partial<TableDescription> = {},
  settings: Partial<typeof SETTINGS> | { ttlAttribute: null } = {},
) => tableFactsOf({ ...DESCRIBED, ...parts }, { ...SETTINGS, ...settings });
const indexes = (change: (name: string) => object): Partial<TableDescription> => ({
  GlobalSecondaryIndexes: (DESCRIBED.GlobalSecondaryIndexes ?? []).map((index) => ({
    ...index,
    ...change(index.IndexName ?? ''),
  })),
});
const projecting = (...names: string[]) =>
  indexes((name) => (names.includes(name) ? { Projection: { ProjectionType: 'ALL' } } : {}));

test('a table made by createTable has no differences', () => {
  expect(differencesOf(factsOf(), {})).toEqual([]);
});

test('a migrated table whose first two indexes project ALL has no differences, and the template keeps that projection', () => {
  const facts = factsOf(projecting('GSI1', 'GSI2'));
  expect(differencesOf(facts, {})).toEqual([]);
  expect(buildImportTemplate(facts).parameters).toEqual({
    TableName: 'limits',
    Gsi1Projection: 'ALL',
    Gsi2Projection: 'ALL',
  });
});

test.each<[what: string, facts: ReturnType<typeof factsOf>, says: RegExp]>([
  ['other keys', factsOf({ KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }] }), /its keys are id, not PK SK/],
  ['a missing index', factsOf({ GlobalSecondaryIndexes: [] }), /it has no index GSI1: add it/],
  [
    'an index with other keys',
    factsOf(indexes((n) => (n === 'GSI3' ? { KeySchema: [] } : {}))),
    /its index GSI3 has the keys /,
  ],
  ['an index that projects more than keys', factsOf(projecting('GSI4')), /its index GSI4 projects ALL, not KEYS_ONLY/],
  [
    'an extra index',
    factsOf(indexes((n) => (n === 'GSI4' ? { IndexName: 'GSI5' } : {}))),
    /an index GSI5, which the stack would remove/,
  ],
  ['a local index', factsOf({ LocalSecondaryIndexes: [{ IndexName: 'L' }] }), /a local index L/],
  [
    'a key that is a number',
    factsOf({ AttributeDefinitions: [{ AttributeName: 'PK', AttributeType: 'N' }] }),
    /PK is of type N/,
  ],
  [
    'no stream',
    factsOf({ StreamSpecification: { StreamEnabled: false } }),
    /no stream: aws dynamodb update-table --table-name limits --stream-sp/,
  ],
  [
    'another stream',
    factsOf({ StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' } }),
    /its stream has KEYS_ONLY/,
  ],
  ['no expiry', factsOf({}, { ttlAttribute: null }), /do not expire: aws dynamodb update-time-to-live/],
  ['expiry by another attribute', factsOf({}, { ttlAttribute: 'gone_at' }), /expire by gone_at, not ttl/],
  [
    'provisioned throughput',
    factsOf({ BillingModeSummary: {} }),
    /billed as PROVISIONED: .* --billing-mode PAY_PER_REQUEST/,
  ],
  ['replicas', factsOf({ Replicas: [{ RegionName: 'us-east-1' }] }), /it has replicas \(us-east-1\)/],
  ['an update in progress', factsOf({ TableStatus: 'UPDATING' }), /it is UPDATING: wait/],
  ['a KMS key', factsOf({ SSEDescription: { Status: 'ENABLED', KMSMasterKeyArn: KEY } }), /pass --param KmsKeyArn=arn/],
])('%s is reported, with a remedy where there is one', (_, facts, says) => {
  const differences = differencesOf(facts, {});
  expect(differences.join('\n')).toMatch(says);
});

test('all differences are reported at once', () => {
  const facts = factsOf(
    { StreamSpecification: { StreamEnabled: false }, BillingModeSummary: {} },
    { ttlAttribute: null },
  );
  expect(differencesOf(facts, {})).toHaveLength(3);
});

test('a KMS key is not a difference when a parameter names the key of the deployment', () => {
  const facts = factsOf({ SSEDescription: { Status: 'ENABLED', KMSMasterKeyArn: KEY } });
  for (const KmsKeyArn of [KEY, '']) expect(differencesOf(facts, { KmsKeyArn })).toEqual([]);
});

test('the import template describes the table as it is, so that the next update finds the differences', () => {
  const facts = factsOf({
    DeletionProtectionEnabled: false,
    SSEDescription: { Status: 'ENABLED', KMSMasterKeyArn: KEY },
  });
  const { template, parameters } = buildImportTemplate(facts);
  expect(template.Resources['Table']).toMatchObject({
    DeletionPolicy: 'Retain',
    Properties: {
      TableName: { Ref: 'TableName' },
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: false },
      DeletionProtectionEnabled: false,
      SSESpecification: { KMSMasterKeyId: { Ref: 'KmsKeyArn' } },
    },
  });
  expect(parameters).toMatchObject({ KmsKeyArn: KEY });
});

test('an import template has only the table, no outputs and no unused parameter', () => {
  const { template } = buildImportTemplate(factsOf());
  expect(Object.keys(template.Resources)).toEqual(['Table']);
  expect(Object.keys(template)).not.toContain('Outputs');
  expect(Object.keys(template.Parameters)).toEqual(['TableName', 'Gsi1Projection', 'Gsi2Projection']);
});
