import { attribute, ref, type Resources } from '../intrinsics.js';
import { FUNCTIONS, PARAMETERS } from '../names.js';

const RULE = 'ReconcilerRule';

export function schedule(): Resources {
  return {
    [RULE]: {
      Type: 'AWS::Events::Rule',
      Properties: {
        Description: 'Headgate: when the reconciler runs',
        ScheduleExpression: ref(PARAMETERS.reconcilerSchedule),
        State: 'ENABLED',
        Targets: [{ Id: 'Reconciler', Arn: attribute(FUNCTIONS.reconciler, 'Arn') }],
      },
    },
    ReconcilerPermission: {
      Type: 'AWS::Lambda::Permission',
      Properties: {
        Action: 'lambda:InvokeFunction',
        FunctionName: ref(FUNCTIONS.reconciler),
        Principal: 'events.amazonaws.com',
        SourceArn: attribute(RULE, 'Arn'),
      },
    },
  };
}
