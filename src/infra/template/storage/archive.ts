import { attribute, either, onlyIf, ref, type Resources, substitute } from '../intrinsics.js';
import { ARCHIVE_PREFIX, PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { overTlsOnly, policyDocument } from '../access/statements.js';

/** How long an overwritten or deleted object can be restored. */
const NONCURRENT_DAYS = 30;
const UNFINISHED_DAYS = 7;

/** The archive of audit records that expire in the table. Deleting the stack keeps it. */
export function archive(): Resources {
  return {
    [RESOURCES.archive]: {
      Type: 'AWS::S3::Bucket',
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: either(
            CONDITIONS.hasKmsKey,
            [
              {
                BucketKeyEnabled: true,
                ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: ref(PARAMETERS.kmsKeyArn) },
              },
            ],
            [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
          ),
        },
        OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        VersioningConfiguration: { Status: 'Enabled' },
        LifecycleConfiguration: {
          Rules: [
            {
              Id: 'noncurrent',
              Status: 'Enabled',
              NoncurrentVersionExpiration: { NoncurrentDays: NONCURRENT_DAYS },
              ExpiredObjectDeleteMarker: true,
              AbortIncompleteMultipartUpload: { DaysAfterInitiation: UNFINISHED_DAYS },
            },
            onlyIf(CONDITIONS.archiveExpires, {
              Id: 'expire',
              Status: 'Enabled',
              Prefix: ARCHIVE_PREFIX,
              ExpirationInDays: ref(PARAMETERS.archiveDays),
            }),
          ],
        },
      },
    },
    ArchivePolicy: {
      Type: 'AWS::S3::BucketPolicy',
      Properties: {
        Bucket: ref(RESOURCES.archive),
        PolicyDocument: policyDocument([
          overTlsOnly('s3:*', [attribute(RESOURCES.archive, 'Arn'), substitute(`\${${RESOURCES.archive}.Arn}/*`)]),
        ]),
      },
    },
  };
}
