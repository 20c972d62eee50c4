/** A request as DynamoDB's protocol has it. */
export interface DynamoRequest {
  /** `UpdateItem`, `BatchGetItem`, ...; empty for a request that is not of the protocol. */
  readonly operation: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer as DynamoDB's protocol has it. */
export interface DynamoAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads `x-amz-target` and body; the body is parsed only if somebody looks at it. */
export function parseRequest(target: string, text: Buffer): DynamoRequest {
  let body: DynamoRequest['body'] | undefined;
  return {
    operation: target.slice(target.indexOf('.') + 1),
    get body() {
      return (body ??= parseBody(text));
    },
  };
}

/** An object in every case: what is not JSON has no fields. */
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
