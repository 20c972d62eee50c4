import { attribute, onlyIf, ref, type Resources, sub } from './intrinsics.js';
import { PARAMETERS, RESOURCES } from './names.js';
import { CONDITIONS } from './parameters.js';

/** Under which the function on the stream keeps audit records. */
export const ARCHIVE_PREFIX = 'audit/';

/** Where audit records go when their time in the table is over. Deleting the stack leaves it where it is. */
export function archive(): Resources {
  return {
    [RESOURCES.archive]: {
      Type: 'AWS::S3::Bucket',
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
        },
        OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        LifecycleConfiguration: onlyIf(CONDITIONS.archiveExpires, {
          Rules: [
            {
              Id: 'expire',
              Status: 'Enabled',
              Prefix: ARCHIVE_PREFIX,
              ExpirationInDays: ref(PARAMETERS.archiveDays),
            },
          ],
        }),
      },
    },
    ArchivePolicy: {
      Type: 'AWS::S3::BucketPolicy',
      Properties: {
        Bucket: ref(RESOURCES.archive),
        PolicyDocument: {
          Version: '2012-10-17',
          Statement: [
            {
              Sid: 'OnlyOverTls',
              Effect: 'Deny',
              Principal: '*',
              Action: 's3:*',
              Resource: [attribute(RESOURCES.archive, 'Arn'), sub(`\${${RESOURCES.archive}.Arn}/*`)],
              Condition: { Bool: { 'aws:SecureTransport': 'false' } },
            },
          ],
        },
      },
    },
  };
}
