import { onlyIf, ref, type Resource, type Resources, type Value } from './intrinsics.js';
import { PARAMETERS, RESOURCES } from './names.js';
import { CONDITIONS } from './parameters.js';

export function functionRoles(): Resources {
  return { [RESOURCES.streamRole]: lambdaRole([]), [RESOURCES.reconcilerRole]: lambdaRole([]) };
}

function lambdaRole(policies: readonly Value[]): Resource {
  return {
    Type: 'AWS::IAM::Role',
    Properties: {
      AssumeRolePolicyDocument: {
        Version: '2012-10-17',
        Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
      },
      Policies: policies,
      PermissionsBoundary: onlyIf(CONDITIONS.hasBoundary, ref(PARAMETERS.permissionsBoundaryArn)),
    },
  };
}
