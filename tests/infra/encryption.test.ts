import { expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import type { Resource } from '../../src/infra/template/intrinsics.js';
import { settleTemplate } from '../support/aws/settle-template.js';

interface Statement {
  readonly Effect: string;
  readonly Principal?: unknown;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

const KEY = 'arn:aws:kms:eu-west-1:123456789012:key/1f0e';
const PLAIN = settleTemplate(buildTemplate()).Resources;
const KEYED = settleTemplate(buildTemplate(), { KmsKeyArn: KEY }).Resources;
const THE_KEY = { Ref: 'KmsKeyArn' };

function propertiesOf(resources: Readonly<Record<string, Resource>>, name: string): Record<string, unknown> {
  return { ...resources[name]?.Properties };
}

function statementsOf(resource: Resource | undefined): readonly Statement[] {
  const { PolicyDocument, KeyPolicy } = (resource?.Properties ?? {}) as Readonly<Record<string, unknown>>;
  return ((PolicyDocument ?? KeyPolicy) as { readonly Statement: readonly Statement[] } | undefined)?.Statement ?? [];
}

test('point-in-time recovery is on unless a parameter says otherwise', () => {
  const { Parameters } = buildTemplate();
  expect(Parameters['PointInTimeRecovery']?.Default).toBe('true');
  expect(propertiesOf(PLAIN, 'Table')['PointInTimeRecoverySpecification']).toEqual({
    PointInTimeRecoveryEnabled: { Ref: 'PointInTimeRecovery' },
  });
});

test.each([
  ['AWS::SNS::Topic', 'AWS::SNS::TopicPolicy', 'Topics', 'sns:Publish'],
  ['AWS::SQS::Queue', 'AWS::SQS::QueuePolicy', 'Queues', 'sqs:*'],
  ['AWS::S3::Bucket', 'AWS::S3::BucketPolicy', 'Bucket', 's3:*'],
])('every %s denies requests without TLS', (type, policyType, target, action) => {
  const guarded = Object.values(PLAIN)
    .filter(({ Type }) => Type === policyType)
    .filter((policy) =>
      statementsOf(policy).some(
        ({ Effect, Principal, Action, Condition }) =>
          Effect === 'Deny' &&
          Principal === '*' &&
          Action === action &&
          JSON.stringify(Condition) === '{"Bool":{"aws:SecureTransport":"false"}}',
      ),
    )
    .flatMap(({ Properties }) => [Properties[target]].flat());
  const ids = Object.keys(PLAIN).filter((id) => PLAIN[id]?.Type === type);
  expect(ids.length).toBeGreaterThan(0);
  expect(guarded).toEqual(ids.map((id) => ({ Ref: id })));
});

test('without a KMS key of the user, queue and archive use AWS keys, and the topic uses a key of the stack that CloudWatch may use', () => {
  expect(JSON.stringify(PLAIN)).not.toContain('"KmsKeyArn"');
  expect(propertiesOf(PLAIN, 'StreamDeadLetters')).toMatchObject({ SqsManagedSseEnabled: true });
  expect(JSON.stringify(PLAIN['ArchiveBucket'])).toContain('"SSEAlgorithm":"AES256"');
  expect(propertiesOf(PLAIN, 'AlarmTopic')).toMatchObject({ KmsMasterKeyId: { Ref: 'AlarmKey' } });
  expect(statementsOf(PLAIN['AlarmKey'])).toContainEqual(
    expect.objectContaining({
      Principal: { Service: 'cloudwatch.amazonaws.com' },
      Action: ['kms:Decrypt', 'kms:GenerateDataKey*'],
    }),
  );
});

test("alarms of this account may publish, because the topic's policy replaces the default policy of SNS", () => {
  expect(statementsOf(PLAIN['AlarmTopicPolicy'])[0]).toMatchObject({
    Effect: 'Allow',
    Principal: { Service: 'cloudwatch.amazonaws.com' },
    Action: 'sns:Publish',
    Condition: { ArnLike: { 'aws:SourceArn': { 'Fn::Sub': expect.stringContaining('${AWS::AccountId}:alarm:*') } } },
  });
});

test('with a KMS key of the user, everything with data is encrypted with it, and the stack creates no key', () => {
  expect(KEYED).not.toHaveProperty('AlarmKey');
  expect(propertiesOf(KEYED, 'Table')['SSESpecification']).toEqual({
    SSEEnabled: true,
    SSEType: 'KMS',
    KMSMasterKeyId: THE_KEY,
  });
  expect(JSON.stringify(KEYED['ArchiveBucket'])).toContain(
    '"SSEAlgorithm":"aws:kms","KMSMasterKeyID":{"Ref":"KmsKeyArn"}',
  );
  expect(propertiesOf(KEYED, 'StreamDeadLetters')).toMatchObject({
    KmsMasterKeyId: THE_KEY,
    SqsManagedSseEnabled: false,
  });
  expect(propertiesOf(KEYED, 'AlarmTopic')).toMatchObject({ KmsMasterKeyId: THE_KEY });
  for (const log of ['StreamLog', 'ReconcilerLog'])
    expect(propertiesOf(KEYED, log)).toMatchObject({ KmsKeyId: THE_KEY });
  for (const name of ['StreamFunction', 'ReconcilerFunction']) {
    expect(propertiesOf(KEYED, name)).toMatchObject({ KmsKeyArn: THE_KEY });
  }
});

test('with a KMS key of the user, roles may use only that key, for the actions that they need', () => {
  const grants = (name: string) => statementsOf(KEYED[name]).map(({ Action, Resource: on }) => [Action, on]);
  expect(grants('KeyPolicy')).toEqual([[['kms:Decrypt'], [THE_KEY]]]);
  expect(grants('StreamKeyPolicy')).toEqual([[['kms:Decrypt', 'kms:GenerateDataKey'], [THE_KEY]]]);
  const policiesOf = (role: string) => propertiesOf(KEYED, role)['ManagedPolicyArns'];
  expect(policiesOf('StreamRole')).toEqual([{ Ref: 'StreamKeyPolicy' }]);
  expect(policiesOf('ReconcilerRole')).toEqual([{ Ref: 'KeyPolicy' }]);
  const roles = settleTemplate(buildTemplate(), { KmsKeyArn: KEY, CreateRoles: 'true' }).Resources;
  for (const role of ['AcquireRole', 'ReadOnlyRole', 'FullRole']) {
    expect(propertiesOf(roles, role)['ManagedPolicyArns']).toContainEqual({ Ref: 'KeyPolicy' });
  }
  expect(propertiesOf(PLAIN, 'StreamRole')).not.toHaveProperty('ManagedPolicyArns');
});

test('the archive keeps overwritten and deleted objects for 30 days, whether or not records expire', () => {
  const ofKept = propertiesOf(PLAIN, 'ArchiveBucket');
  expect(ofKept).toMatchObject({
    VersioningConfiguration: { Status: 'Enabled' },
    LifecycleConfiguration: { Rules: [{ NoncurrentVersionExpiration: { NoncurrentDays: 30 } }] },
  });
  const expiring = settleTemplate(buildTemplate(), { ArchiveDays: '90' }).Resources;
  expect(propertiesOf(expiring, 'ArchiveBucket')).toMatchObject({
    LifecycleConfiguration: { Rules: [{ Id: 'noncurrent' }, { Id: 'expire' }] },
  });
});
