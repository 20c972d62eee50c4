/** A request of DynamoDB's protocol. */
export interface DynamoRequest {
  /** `UpdateItem`, `BatchGetItem`, ...; empty for a request of another protocol. */
  readonly operation: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer of DynamoDB's protocol. */
export interface DynamoAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Parses `x-amz-target` now and the body at first use. */
export function parseRequest(target: string, text: Buffer): DynamoRequest {
  let body: DynamoRequest['body'] | undefined;
  return {
    operation: target.slice(target.indexOf('.') + 1),
    get body() {
      return (body ??= parseBody(text));
    },
  };
}

/** Always an object; empty if the text is not a JSON object. */
export function parseBody(text: Buffer): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text.toString('utf8'));
    return isRecord(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const SINGLE_WRITES: readonly string[] = ['PutItem', 'UpdateItem', 'DeleteItem'];

export const isSingleWrite = ({ operation }: DynamoRequest): boolean => SINGLE_WRITES.includes(operation);

export const isTransaction = ({ operation }: DynamoRequest): boolean => operation.startsWith('Transact');

export const isWrite = (request: DynamoRequest): boolean =>
  isSingleWrite(request) || request.operation === 'BatchWriteItem' || request.operation === 'TransactWriteItems';
