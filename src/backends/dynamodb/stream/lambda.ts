import { systemClock } from '../../../clock.js';
import { ValidationError } from '../../../core/errors.js';
import { reasonOf } from '../../../core/reason-of.js';
import type { Table } from '../client/requests.js';
import { openTransport } from '../client/open-transport.js';
import type { SdkOptions } from '../client/sdk-transport.js';
import type { Archive } from './archive/archive.js';
import { parseStreamLabel } from './decode.js';
import { type BatchTools, processBatch } from './process-batch.js';
import { s3Archive } from './archive/s3-archive.js';
import { SplitAhead } from './split-ahead.js';

/** The part of Lambda's event that the handler uses. */
export interface StreamEvent {
  readonly Records: readonly { readonly eventSourceARN?: string }[];
}

/** The mapping's function response types must include `ReportBatchItemFailures`, or Lambda ignores this. */
export interface StreamResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}

/** Options of `createStreamHandler`. */
export interface StreamHandlerOptions extends SdkOptions {
  /** The table's name. Default: the table of the event's source. */
  readonly table?: string;
  /** Stores audit records that expire. Without it, they are not archived. */
  readonly archive?: Archive;
  /** The time in milliseconds. Default: that of the store. */
  readonly now?: () => number;
  /** Receives one line of JSON. Default: standard output. */
  readonly log?: (line: string) => void;
}

/**
 * Creates a Lambda handler for a table's stream. Returns the first record that must be retried; Lambda retries from
 * there.
 * https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
 */
export function createStreamHandler(
  options: StreamHandlerOptions = {},
): (event: StreamEvent) => Promise<StreamResponse> {
  const { archive = null, log = (line) => process.stdout.write(`${line}\n`) } = options;
  const transport = openTransport(options);
  const now = options.now ?? (() => transport.storeTimeMs() ?? systemClock.now());
  const say = (message: string, details: object): void => log(JSON.stringify({ message, ...details }));
  const tools = new Map<string, BatchTools>();
  const toolsOf = (name: string): BatchTools => {
    const known = tools.get(name);
    if (known !== undefined) return known;
    const table: Table = { name, transport, random: Math.random };
    const made: BatchTools = {
      table,
      archive,
      splitAhead: new SplitAhead(table),
      now,
      onPoison: (poison) => say('headgate stream: a record was skipped', poison),
      onError: (error, where) => say('headgate stream: an error', { where, reason: reasonOf(error) }),
    };
    tools.set(name, made);
    return made;
  };
  return async ({ Records }) => {
    if (Records.length === 0) return { batchItemFailures: [] };
    const arn = Records[0]?.eventSourceARN ?? '';
    const result = await processBatch(toolsOf(options.table ?? tableOf(arn)), parseStreamLabel(arn), Records);
    const { failures, ...counts } = result;
    const [first] = failures;
    say('headgate stream', { records: Records.length, failed: failures.length, ...counts });
    if (first === undefined) return { batchItemFailures: [] };
    say('headgate stream: a record failed', { sequence: first.sequenceNumber, reason: reasonOf(first.error) });
    return { batchItemFailures: [{ itemIdentifier: first.sequenceNumber }] };
  };
}

/** `arn:aws:dynamodb:eu-west-1:123456789012:table/limits/stream/2027-01-01T00:00:00.000` */
function tableOf(streamArn: string): string {
  const name = /:table\/([^/]+)\/stream\//.exec(streamArn)?.[1];
  if (name === undefined) throw new ValidationError('eventSourceARN', 'the ARN of a stream of DynamoDB', streamArn);
  return name;
}

let fromEnvironment: ReturnType<typeof createStreamHandler> | null = null;

/**
 * The deployed handler. `HEADGATE_ARCHIVE_BUCKET` names the bucket for audit records; without it, they are not
 * archived.
 */
export async function handler(event: StreamEvent): Promise<StreamResponse> {
  const bucket = process.env['HEADGATE_ARCHIVE_BUCKET'] ?? '';
  fromEnvironment ??= createStreamHandler(bucket === '' ? {} : { archive: s3Archive({ bucket }) });
  return fromEnvironment(event);
}
