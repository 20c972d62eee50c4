import { ref, type Resource, type Resources } from '../intrinsics.js';
import { KEY_POLICIES, PARAMETERS } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { policyDocument } from './statements.js';

/**
 * The permissions for the KMS key that the parameter names. A separate policy, because template checkers cannot read a
 * policy with a conditional statement.
 */
export function keyPolicies(): Resources {
  return {
    // DynamoDB decrypts the key of the table with the caller's permissions, for reads and for writes.
    // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
    [KEY_POLICIES.use]: keyPolicy('use of a table that is encrypted with a KMS key', ['Decrypt']),
    // Each object of the archive and each message of the queue also gets a data key.
    [KEY_POLICIES.stream]: keyPolicy('the KMS key, for the function on the stream', ['Decrypt', 'GenerateDataKey']),
  };
}

function keyPolicy(description: string, actions: readonly string[]): Resource {
  return {
    Type: 'AWS::IAM::ManagedPolicy',
    Condition: CONDITIONS.hasKmsKey,
    Properties: {
      Description: `Headgate: ${description}`,
      PolicyDocument: policyDocument([
        {
          Sid: 'UseKey',
          Effect: 'Allow',
          Action: actions.map((action) => `kms:${action}`),
          Resource: [ref(PARAMETERS.kmsKeyArn)],
        },
      ]),
    },
  };
}
