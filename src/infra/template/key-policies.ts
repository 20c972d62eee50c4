import { ref, type Resource, type Resources } from './intrinsics.js';
import { KEY_POLICIES, PARAMETERS } from './names.js';
import { CONDITIONS } from './parameters.js';
import { policyDocument } from './statements.js';

/**
 * What the KMS key of the parameter has to allow, on that key only. A policy of its own, because a statement that may be
 * missing makes a policy unreadable to the programs that check templates.
 */
export function keyPolicies(): Resources {
  return {
    // DynamoDB decrypts the key of the table in the name of the caller: for reads and writes alike.
    // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
    [KEY_POLICIES.use]: keyPolicy('use of a table that is encrypted with a KMS key', ['Decrypt']),
    // Besides, an object of the archive and a message of the queue each get a data key.
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
