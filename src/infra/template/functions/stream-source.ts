import { attribute, either, onlyIf, ref, type Resources } from '../intrinsics.js';
import { FUNCTIONS, PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { overTlsOnly, policyDocument } from '../access/statements.js';
import { streamFilters } from './stream-filters.js';

const DAY_SEC = 24 * 3_600;

/** Each batch costs three writes for usage, so fewer batches cost less. */
const BATCH_SIZE = 100;

/**
 * A change stays in the stream for 24 hours. One that is given up after 22 hours can still be read there for two hours.
 */
const GIVE_UP_SEC = 22 * 3_600;

/** Delivers the changes of the table to the function, and queues the changes that it gave up. */
export function streamSource(): Resources {
  return {
    [RESOURCES.deadLetters]: {
      Type: 'AWS::SQS::Queue',
      DeletionPolicy: 'Delete',
      UpdateReplacePolicy: 'Delete',
      Properties: {
        MessageRetentionPeriod: 14 * DAY_SEC,
        KmsMasterKeyId: onlyIf(CONDITIONS.hasKmsKey, ref(PARAMETERS.kmsKeyArn)),
        // SQS accepts either its own keys or a KMS key.
        SqsManagedSseEnabled: either(CONDITIONS.hasKmsKey, false, true),
      },
    },
    DeadLettersPolicy: {
      Type: 'AWS::SQS::QueuePolicy',
      Properties: {
        Queues: [ref(RESOURCES.deadLetters)],
        PolicyDocument: policyDocument([overTlsOnly('sqs:*', [attribute(RESOURCES.deadLetters, 'Arn')])]),
      },
    },
    StreamSource: {
      Type: 'AWS::Lambda::EventSourceMapping',
      Properties: {
        EventSourceArn: attribute(RESOURCES.table, 'StreamArn'),
        FunctionName: ref(FUNCTIONS.stream),
        StartingPosition: 'TRIM_HORIZON',
        BatchSize: BATCH_SIZE,
        MaximumBatchingWindowInSeconds: ref(PARAMETERS.streamBatchWindowSec),
        // Changes of one bucket must be counted in order.
        ParallelizationFactor: 1,
        BisectBatchOnFunctionError: true,
        // Retry without a limit: the failing part is the store or the archive, and both recover.
        MaximumRetryAttempts: -1,
        MaximumRecordAgeInSeconds: GIVE_UP_SEC,
        FunctionResponseTypes: ['ReportBatchItemFailures'],
        FilterCriteria: streamFilters(),
        DestinationConfig: { OnFailure: { Destination: attribute(RESOURCES.deadLetters, 'Arn') } },
      },
    },
  };
}
