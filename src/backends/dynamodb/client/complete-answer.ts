import type { Operation, Operations } from './transport.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Operations that DynamoDB may answer with `{}`: an answer that lost its body looks the same. They request the consumed
 * capacity, which is free of charge, so that every complete answer has a field.
 */
const MAY_BE_EMPTY: ReadonlySet<Operation> = new Set([
  'DeleteItem',
  'GetItem',
  'PutItem',
  'TransactWriteItems',
  'UpdateItem',
]);

/** The input with a request for a field that proves that the answer is complete. */
export function askForProof<Op extends Operation>(operation: Op, input: Operations[Op][0]): Operations[Op][0] {
  const asks = MAY_BE_EMPTY.has(operation) && !showsNewItem(input);
  return asks ? { ReturnConsumedCapacity: 'TOTAL', ...input } : input;
}

/** The field that a complete answer to this input must have and that this one lacks. null: it is complete. */
export function findMissingPart(operation: Operation, input: object, output: object): string | null {
  const [asked, answer] = [input as Fields, output as Fields];
  if (operation === 'BatchGetItem') return findMissingTable(asked, answer);
  const field = requiredField(operation, asked);
  return isThere(answer[field]) ? null : field;
}

function requiredField(operation: Exclude<Operation, 'BatchGetItem'>, input: Fields): string {
  switch (operation) {
    case 'BatchWriteItem':
      return 'UnprocessedItems';
    case 'CreateTable':
      return 'TableDescription';
    case 'DescribeTable':
      return 'Table';
    case 'Query':
    case 'Scan':
      return input['Select'] === 'COUNT' ? 'Count' : 'Items';
    case 'UpdateTimeToLive':
      return 'TimeToLiveSpecification';
    case 'DeleteItem':
    case 'GetItem':
    case 'PutItem':
    case 'TransactWriteItems':
    case 'UpdateItem':
      return showsNewItem(input) ? 'Attributes' : 'ConsumedCapacity';
  }
}

function showsNewItem(input: object): boolean {
  return (input as Fields)['ReturnValues'] === 'ALL_NEW';
}

/**
 * A table whose items were not found has an empty list. Only a table of which no key was processed may have no list.
 */
function findMissingTable({ RequestItems }: Fields, { Responses, UnprocessedKeys }: Fields): string | null {
  const missing = Object.keys(RequestItems ?? {}).find((table) => {
    const unprocessed = keysOf(UnprocessedKeys, table);
    return !isThere(ownField(Responses, table)) && unprocessed < keysOf(RequestItems, table);
  });
  return missing === undefined ? null : `Responses.${missing}`;
}

function keysOf(requests: unknown, table: string): number {
  const ofTable = ownField(requests, table) as { readonly Keys?: readonly unknown[] } | undefined;
  return ofTable?.Keys?.length ?? 0;
}

/** A table may be called `toString`, which every object inherits. */
function ownField(fields: unknown, name: string): unknown {
  return typeof fields === 'object' && fields !== null && Object.hasOwn(fields, name)
    ? (fields as Fields)[name]
    : undefined;
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}
