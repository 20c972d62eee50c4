import { attribute, type Output, ref, type Value } from './intrinsics.js';
import { FUNCTIONS, KEY_POLICIES, OUTPUTS, POLICIES, RESOURCES, ROLES } from './names.js';
import { CONDITIONS } from './parameters.js';

export function outputs(): Readonly<Record<string, Output>> {
  return {
    [OUTPUTS.tableName]: output('Name of the table', ref(RESOURCES.table)),
    [OUTPUTS.tableArn]: output('ARN of the table', attribute(RESOURCES.table, 'Arn')),
    [OUTPUTS.streamArn]: output('ARN of its stream', attribute(RESOURCES.table, 'StreamArn')),
    [OUTPUTS.streamFunctionName]: output('Function on the stream', ref(FUNCTIONS.stream)),
    [OUTPUTS.reconcilerFunctionName]: output('Function that reconciles', ref(FUNCTIONS.reconciler)),
    [OUTPUTS.archiveBucketName]: output('Bucket of archived audit records', ref(RESOURCES.archive)),
    [OUTPUTS.alarmTopicArn]: output('Topic of the alarms', ref(RESOURCES.alarms)),
    [OUTPUTS.deadLetterQueueUrl]: output('Queue of changes that were given up', ref(RESOURCES.deadLetters)),
    [OUTPUTS.dashboardName]: output('Dashboard of the stack', ref('Dashboard')),
    ...Object.fromEntries(
      Object.values(POLICIES).map((name) => [`${name}Arn`, output(`ARN of the policy ${name}`, ref(name))]),
    ),
    [`${KEY_POLICIES.use}Arn`]: {
      ...output(`ARN of the policy ${KEY_POLICIES.use}`, ref(KEY_POLICIES.use)),
      Condition: CONDITIONS.hasKmsKey,
    },
    ...Object.fromEntries(Object.values(ROLES).map((name) => [`${name}Arn`, roleOutput(name)])),
  };
}

function output(description: string, value: Value): Output {
  return { Description: description, Value: value };
}

function roleOutput(name: string): Output {
  return { ...output(`ARN of the role ${name}`, attribute(name, 'Arn')), Condition: CONDITIONS.createsRoles };
}
