import { either, ref, type Resources, substitute } from '../intrinsics.js';
import { PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { overTlsOnly, policyDocument } from '../access/statements.js';

const PENDING_DAYS = 7;

/** The encrypted topic of the alarms. Only alarms of this account may publish to it. */
export function alarmTopic(): Resources {
  return {
    [RESOURCES.alarms]: {
      Type: 'AWS::SNS::Topic',
      Properties: {
        DisplayName: 'Headgate',
        KmsMasterKeyId: either(CONDITIONS.hasKmsKey, ref(PARAMETERS.kmsKeyArn), ref(RESOURCES.alarmKey)),
      },
    },
    AlarmTopicPolicy: {
      Type: 'AWS::SNS::TopicPolicy',
      Properties: {
        Topics: [ref(RESOURCES.alarms)],
        PolicyDocument: policyDocument([
          {
            // This policy replaces the default policy of SNS, so it must repeat the permission of alarms.
            Sid: 'Alarms',
            Effect: 'Allow',
            Principal: { Service: 'cloudwatch.amazonaws.com' },
            Action: 'sns:Publish',
            Resource: [ref(RESOURCES.alarms)],
            Condition: {
              ArnLike: {
                'aws:SourceArn': substitute(
                  'arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*',
                ),
              },
            },
          },
          overTlsOnly('sns:Publish', [ref(RESOURCES.alarms)]),
        ]),
      },
    },
    [RESOURCES.alarmKey]: alarmKey(),
  };
}

/**
 * CloudWatch cannot use the AWS managed key of SNS, whose policy cannot be changed. So the stack creates a key unless a
 * parameter names one.
 * https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger
 */
function alarmKey(): Resources[string] {
  return {
    Type: 'AWS::KMS::Key',
    Condition: CONDITIONS.makesAlarmKey,
    DeletionPolicy: 'Delete',
    UpdateReplacePolicy: 'Delete',
    Properties: {
      Description: substitute('Headgate: messages in the alarm topic of ${AWS::StackName}'),
      EnableKeyRotation: true,
      PendingWindowInDays: PENDING_DAYS,
      KeyPolicy: policyDocument([
        {
          Sid: 'Administer',
          Effect: 'Allow',
          Principal: { AWS: substitute('arn:${AWS::Partition}:iam::${AWS::AccountId}:root') },
          Action: 'kms:*',
          Resource: '*',
        },
        {
          Sid: 'Alarms',
          Effect: 'Allow',
          Principal: { Service: 'cloudwatch.amazonaws.com' },
          Action: ['kms:Decrypt', 'kms:GenerateDataKey*'],
          Resource: '*',
        },
      ]),
    },
  };
}
