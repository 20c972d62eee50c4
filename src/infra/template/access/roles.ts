import { either, onlyIf, ref, type Resource, type Resources, substitute, type Value } from '../intrinsics.js';
import { KEY_POLICIES, PARAMETERS, POLICIES, ROLES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { policyDocument } from './statements.js';

/** Optional roles for apps in accounts that have none. */
export function appRoles(): Resources {
  const names = Object.keys(ROLES) as (keyof typeof ROLES)[];
  return Object.fromEntries(names.map((name) => [ROLES[name], appRole(POLICIES[name])]));
}

function appRole(policy: string): Resource {
  const anyone = substitute('arn:${AWS::Partition}:iam::${AWS::AccountId}:root');
  const principal = either(CONDITIONS.hasRolePrincipal, ref(PARAMETERS.rolePrincipalArn), anyone);
  return {
    Type: 'AWS::IAM::Role',
    Condition: CONDITIONS.createsRoles,
    Properties: {
      ...assumedBy({ AWS: principal }),
      ManagedPolicyArns: [ref(policy), onlyIf(CONDITIONS.hasKmsKey, ref(KEY_POLICIES.use))],
    },
  };
}

/** The trust policy of a role, and the permissions boundary that all roles of the stack share. */
export function assumedBy(principal: Value): Readonly<Record<string, Value>> {
  return {
    AssumeRolePolicyDocument: policyDocument([{ Effect: 'Allow', Principal: principal, Action: 'sts:AssumeRole' }]),
    PermissionsBoundary: onlyIf(CONDITIONS.hasBoundary, ref(PARAMETERS.permissionsBoundaryArn)),
  };
}
