import { type DynamoAnswer, type DynamoRequest, isRecord, isTransaction, isWrite } from './dynamo-request.js';

const DYNAMODB = 'com.amazonaws.dynamodb.v20120810#';
const CORAL = 'com.amazon.coral.service#';
const ACCOUNT = 'arn:aws:dynamodb:us-east-1:123456789012:table/';

/** The throttling error that the proxy answers with. */
export interface Throttling {
  /** The name of the error. The errors differ in the spelling of the reasons field. */
  readonly error?: 'ProvisionedThroughputExceededException' | 'ThrottlingException' | 'RequestLimitExceeded';
  /** The limit that was exceeded. null: the error has no reasons, as in older versions of DynamoDB. */
  readonly limit?:
    | 'KeyRangeThroughputExceeded'
    | 'ProvisionedThroughputExceeded'
    | 'AccountLimitExceeded'
    | 'MaxOnDemandThroughputExceeded'
    | null;
  /** The throttled index. Default: the table. */
  readonly index?: string;
}

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html */
export function buildThrottling(request: DynamoRequest, throttling: Throttling = {}): DynamoAnswer {
  const { error = 'ProvisionedThroughputExceededException', limit = 'KeyRangeThroughputExceeded', index } = throttling;
  const reasons = tablesOf(request).map((table) => ({
    reason: `${index === undefined ? 'Table' : 'Index'}${isWrite(request) ? 'Write' : 'Read'}${limit}`,
    resource: index === undefined ? `${ACCOUNT}${table}` : `${ACCOUNT}${table}/index/${index}`,
  }));
  // The service's model has lower case for this error only.
  const field = error === 'ThrottlingException' ? 'throttlingReasons' : 'ThrottlingReasons';
  return {
    status: 400,
    body: {
      __type: `${DYNAMODB}${error}`,
      message: 'The request was denied due to request throttling.',
      ...(limit === null ? {} : { [field]: reasons }),
    },
  };
}

export function buildServerError(status: 500 | 503): DynamoAnswer {
  return status === 500
    ? { status, body: { __type: `${DYNAMODB}InternalServerError`, message: 'Internal server error' } }
    : { status, body: { __type: `${CORAL}ServiceUnavailable`, message: 'Service is temporarily unavailable' } };
}

export function buildAccessDenied({ operation }: DynamoRequest): DynamoAnswer {
  const message =
    `User: arn:aws:iam::123456789012:user/tester is not authorized to perform: dynamodb:${operation} ` +
    `because no identity-based policy allows the dynamodb:${operation} action`;
  return { status: 400, body: { __type: `${CORAL}AccessDeniedException`, Message: message } };
}

/** The answer to a single write, or to a transaction. `items`: the indexes of the transaction items that are in conflict. */
export function buildTransactionConflict(request: DynamoRequest, items: readonly number[] = [0]): DynamoAnswer {
  const message = 'Transaction is ongoing for the item';
  if (!isTransaction(request)) {
    return { status: 400, body: { __type: `${DYNAMODB}TransactionConflictException`, message } };
  }
  const reasons = transactItems(request).map((_, index) =>
    items.includes(index) ? { Code: 'TransactionConflict', Message: message } : { Code: 'None' },
  );
  const codes = reasons.map(({ Code }) => Code).join(', ');
  return {
    status: 400,
    body: {
      __type: `${DYNAMODB}TransactionCanceledException`,
      Message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
      CancellationReasons: reasons,
    },
  };
}

function transactItems({ body }: DynamoRequest): readonly unknown[] {
  const items = body['TransactItems'];
  return Array.isArray(items) ? items : [];
}

function tablesOf(request: DynamoRequest): readonly string[] {
  const { TableName, RequestItems } = request.body;
  if (typeof TableName === 'string') return [TableName];
  if (isRecord(RequestItems)) return Object.keys(RequestItems);
  const names = transactItems(request)
    .filter(isRecord)
    .flatMap((item) => Object.values(item).filter(isRecord))
    .map((action) => action['TableName'])
    .filter((name) => typeof name === 'string');
  return [...new Set(names)];
}
