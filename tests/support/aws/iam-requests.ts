import type { RecordedRequest } from '../../../src/testing/dynamodb/index.js';

/** What IAM evaluates for one request, or for one part of a transaction. */
export interface Authorization {
  /** `dynamodb:UpdateItem` */
  readonly action: string;
  /** An ARN. */
  readonly resource: string;
  /** The partition keys of the request, which IAM calls `dynamodb:LeadingKeys`. */
  readonly leadingKeys: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;
type KeyFields = Readonly<Record<string, { readonly S?: string }>>;

export const TABLE_ARN = 'arn:aws:dynamodb:eu-west-1:123456789012:table/headgate';
export const STREAM_ARN = `${TABLE_ARN}/stream/2027-01-01T00:00:00.000`;

const PART_ACTIONS: Readonly<Record<string, string>> = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
};

/** A transaction has no action: IAM evaluates its parts. */
export function authorizationsOf({ operation, body }: Pick<RecordedRequest, 'operation' | 'body'>): Authorization[] {
  if (operation === 'TransactWriteItems') {
    const parts = body['TransactItems'] as readonly Readonly<Record<string, Fields>>[];
    return parts.flatMap((part) =>
      Object.entries(part).map(([kind, fields]) => ask(PART_ACTIONS[kind] ?? kind, TABLE_ARN, [keyOf(fields)])),
    );
  }
  if (operation === 'Query') {
    const index = body['IndexName'];
    return [ask(operation, typeof index === 'string' ? `${TABLE_ARN}/index/${index}` : TABLE_ARN, [partitionOf(body)])];
  }
  if (operation.startsWith('Batch'))
    return [ask(operation, TABLE_ARN, Object.values(entriesOf(body)).flat().map(keyOf))];
  if (['DescribeStream', 'GetRecords', 'GetShardIterator'].includes(operation)) return [ask(operation, STREAM_ARN, [])];
  if (operation === 'DescribeTable') return [ask(operation, TABLE_ARN, [])];
  return [ask(operation, TABLE_ARN, [keyOf(body)])];
}

function ask(action: string, resource: string, leadingKeys: readonly string[]): Authorization {
  return { action: `dynamodb:${action}`, resource, leadingKeys };
}

/** The keys of a request or of a part of one. */
function keyOf(fields: Fields): string {
  const { Key, Item, PutRequest, DeleteRequest } = fields as Readonly<Record<string, Fields | undefined>>;
  const nested = PutRequest ?? DeleteRequest;
  if (nested !== undefined) return keyOf(nested);
  const key = (Key ?? Item ?? fields) as KeyFields;
  const partition = key['PK']?.S;
  if (partition === undefined) throw new TypeError(`no key is in ${JSON.stringify(fields)}`);
  return partition;
}

function entriesOf(body: Fields): Readonly<Record<string, readonly Fields[]>> {
  const items = body['RequestItems'] as Readonly<
    Record<string, readonly Fields[] | { readonly Keys: readonly Fields[] }>
  >;
  return Object.fromEntries(
    Object.entries(items).map(([table, entries]) => [table, 'Keys' in entries ? entries.Keys : entries]),
  );
}

/** `#p = :p AND ...`: the condition on the partition key comes first. */
function partitionOf(body: Fields): string {
  const placeholder = /^[#\w]+ = (:\w+)/.exec(String(body['KeyConditionExpression']))?.[1] ?? '';
  const value = (body['ExpressionAttributeValues'] as KeyFields)[placeholder]?.S;
  if (value === undefined) throw new TypeError(`no partition is in ${JSON.stringify(body)}`);
  return value;
}
