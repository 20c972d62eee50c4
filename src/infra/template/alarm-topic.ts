import { either, ref, type Resources, sub } from './intrinsics.js';
import { PARAMETERS, RESOURCES } from './names.js';
import { CONDITIONS } from './parameters.js';
import { overTlsOnly, policyDocument } from './statements.js';

const PENDING_DAYS = 7;

/** The topic of the alarms, encrypted, and open to the alarms of this account alone. */
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
            // This policy replaces the one that SNS gives a topic: what that allowed to alarms is said here.
            Sid: 'Alarms',
            Effect: 'Allow',
            Principal: { Service: 'cloudwatch.amazonaws.com' },
            Action: 'sns:Publish',
            Resource: [ref(RESOURCES.alarms)],
            Condition: {
              ArnLike: {
                'aws:SourceArn': sub('arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*'),
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
 * CloudWatch may not use the key that AWS has for SNS: its policy cannot be changed. So the stack makes one, unless it is
 * given one. https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger
 */
function alarmKey(): Resources[string] {
  return {
    Type: 'AWS::KMS::Key',
    Condition: CONDITIONS.makesAlarmKey,
    DeletionPolicy: 'Delete',
    UpdateReplacePolicy: 'Delete',
    Properties: {
      Description: sub('Headgate: messages in the alarm topic of ${AWS::StackName}'),
      EnableKeyRotation: true,
      PendingWindowInDays: PENDING_DAYS,
      KeyPolicy: policyDocument([
        {
          Sid: 'Administer',
          Effect: 'Allow',
          Principal: { AWS: sub('arn:${AWS::Partition}:iam::${AWS::AccountId}:root') },
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
