import { attribute, either, onlyIf, ref, type Resources } from './intrinsics.js';
import { FUNCTIONS, PARAMETERS, RESOURCES } from './names.js';
import { CONDITIONS } from './parameters.js';
import { overTlsOnly, policyDocument } from './statements.js';
import { streamFilters } from './stream-filters.js';

const DAY_SEC = 24 * 3_600;

/** Usage costs three writes for a batch: the fewer batches, the cheaper. */
const BATCH_SIZE = 100;

/** A change stays in the stream for 24 hours. What is given up earlier can still be read there by who is told of it. */
const GIVE_UP_SEC = 22 * 3_600;

/** What brings the changes of the table to the function, and where it puts what it had to give up. */
export function streamSource(): Resources {
  return {
    [RESOURCES.deadLetters]: {
      Type: 'AWS::SQS::Queue',
      DeletionPolicy: 'Delete',
      UpdateReplacePolicy: 'Delete',
      Properties: {
        MessageRetentionPeriod: 14 * DAY_SEC,
        KmsMasterKeyId: onlyIf(CONDITIONS.hasKmsKey, ref(PARAMETERS.kmsKeyArn)),
        // SQS takes either its own keys or one of KMS.
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
        // Changes of one bucket are counted in their order.
        ParallelizationFactor: 1,
        BisectBatchOnFunctionError: true,
        // As often as it takes: what fails is the store or the archive, and they come back.
        MaximumRetryAttempts: -1,
        MaximumRecordAgeInSeconds: GIVE_UP_SEC,
        FunctionResponseTypes: ['ReportBatchItemFailures'],
        FilterCriteria: streamFilters(),
        DestinationConfig: { OnFailure: { Destination: attribute(RESOURCES.deadLetters, 'Arn') } },
      },
    },
  };
}
