import { attribute, onlyIf, ref, type Resource, type Resources, type Value } from '../intrinsics.js';
import { FUNCTIONS, HANDLER, PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';

/**
 * Throws, so that a batch stays in the stream until the code is uploaded. CloudFormation takes this text as the
 * function's code: if it changes, an update replaces the uploaded code with it until the next upload. `saveCode`
 * restores the code that a roll-back replaces.
 */
const PLACEHOLDER = [
  'exports.handler = async () => {',
  "  throw new Error('the code of this function was not uploaded yet: headgate upgrade');",
  '};',
].join('\n');

/** More than the 30 seconds that a batch takes at most. */
const STREAM_TIMEOUT_SEC = 60;

/** Less than the default schedule, so that sweeps do not overlap. The reconciler stops before this timeout. */
const RECONCILER_TIMEOUT_SEC = 240;

export function functions(): Resources {
  return {
    [FUNCTIONS.stream]: lambda({
      Description: 'Headgate: counts usage, archives audit records, splits busy buckets',
      Role: attribute(RESOURCES.streamRole, 'Arn'),
      Timeout: STREAM_TIMEOUT_SEC,
      MemorySize: ref(PARAMETERS.streamMemoryMb),
      ReservedConcurrentExecutions: onlyIf(CONDITIONS.reservesConcurrency, ref(PARAMETERS.streamConcurrency)),
      Environment: { Variables: { HEADGATE_ARCHIVE_BUCKET: ref(RESOURCES.archive) } },
      LoggingConfig: { LogGroup: ref(RESOURCES.streamLog) },
    }),
    [FUNCTIONS.reconciler]: lambda({
      Description: 'Headgate: takes back what expired leases hold, merges cold shards',
      Role: attribute(RESOURCES.reconcilerRole, 'Arn'),
      Timeout: RECONCILER_TIMEOUT_SEC,
      MemorySize: ref(PARAMETERS.reconcilerMemoryMb),
      Environment: { Variables: { HEADGATE_TABLE: ref(RESOURCES.table) } },
      LoggingConfig: { LogGroup: ref(RESOURCES.reconcilerLog) },
    }),
  };
}

function lambda(properties: Readonly<Record<string, Value>>): Resource {
  return {
    Type: 'AWS::Lambda::Function',
    Properties: {
      Runtime: 'nodejs22.x',
      Architectures: ['arm64'],
      Handler: HANDLER,
      Code: { ZipFile: PLACEHOLDER },
      // Encrypts the environment variables. Lambda encrypts the code itself.
      KmsKeyArn: onlyIf(CONDITIONS.hasKmsKey, ref(PARAMETERS.kmsKeyArn)),
      ...properties,
    },
  };
}
