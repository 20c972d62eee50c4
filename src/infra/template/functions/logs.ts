import { onlyIf, ref, type Resource, type Resources, substitute } from '../intrinsics.js';
import { PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';

export function logs(): Resources {
  return { [RESOURCES.streamLog]: logGroup('stream'), [RESOURCES.reconcilerLog]: logGroup('reconciler') };
}

function logGroup(name: string): Resource {
  return {
    Type: 'AWS::Logs::LogGroup',
    DeletionPolicy: 'Delete',
    UpdateReplacePolicy: 'Delete',
    Properties: {
      LogGroupName: substitute(`/headgate/\${AWS::StackName}/${name}`),
      RetentionInDays: ref(PARAMETERS.logRetentionDays),
      KmsKeyId: onlyIf(CONDITIONS.hasKmsKey, ref(PARAMETERS.kmsKeyArn)),
    },
  };
}
