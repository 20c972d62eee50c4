import { attribute, type Output, ref, type Value } from './intrinsics.js';
import { FUNCTIONS, OUTPUTS, RESOURCES } from './names.js';

export function outputs(): Readonly<Record<string, Output>> {
  return {
    [OUTPUTS.tableName]: output('Name of the table', ref(RESOURCES.table)),
    [OUTPUTS.tableArn]: output('ARN of the table', attribute(RESOURCES.table, 'Arn')),
    [OUTPUTS.streamArn]: output('ARN of its stream', attribute(RESOURCES.table, 'StreamArn')),
    [OUTPUTS.streamFunctionName]: output('Function on the stream', ref(FUNCTIONS.stream)),
    [OUTPUTS.reconcilerFunctionName]: output('Function that reconciles', ref(FUNCTIONS.reconciler)),
  };
}

function output(description: string, value: Value): Output {
  return { Description: description, Value: value };
}
