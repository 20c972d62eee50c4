import { type DynamoRequest, isRecord } from './dynamo-request.js';

/** The part of a batch that is processed, and the answer field for the unprocessed part. */
export interface PartialBatch {
  readonly processed: Readonly<Record<string, unknown>>;
  readonly unprocessed: Readonly<Record<string, unknown>>;
  readonly field: 'UnprocessedKeys' | 'UnprocessedItems';
}

const FIELDS: Readonly<Record<string, PartialBatch['field']>> = {
  BatchGetItem: 'UnprocessedKeys',
  BatchWriteItem: 'UnprocessedItems',
};

/** Splits a batch after its first `count` keys or writes; null if it is not a batch or has no more than that. */
export function splitBatch({ operation, body }: DynamoRequest, count: number): PartialBatch | null {
  const field = FIELDS[operation];
  const tables = body['RequestItems'];
  if (field === undefined || !isRecord(tables)) return null;
  const processed: Record<string, unknown> = {};
  const unprocessed: Record<string, unknown> = {};
  let left = count;
  for (const [table, request] of Object.entries(tables)) {
    const entries = entriesOf(request);
    const first = entries.slice(0, left);
    const rest = entries.slice(left);
    left -= first.length;
    if (first.length > 0) processed[table] = withEntries(request, first);
    if (rest.length > 0) unprocessed[table] = withEntries(request, rest);
  }
  if (Object.keys(unprocessed).length === 0) return null;
  return { processed: { ...body, RequestItems: processed }, unprocessed, field };
}

/** BatchGetItem has an object with keys and settings for each table; BatchWriteItem has a plain list. */
function entriesOf(request: unknown): readonly unknown[] {
  const entries: unknown = isRecord(request) ? request['Keys'] : request;
  return Array.isArray(entries) ? entries : [];
}

function withEntries(request: unknown, entries: readonly unknown[]): unknown {
  return isRecord(request) ? { ...request, Keys: entries } : entries;
}

/** The engine's answer to the processed part, completed to an answer to the whole batch. */
export function joinBatch(
  answer: Readonly<Record<string, unknown>>,
  { field, unprocessed }: PartialBatch,
): Readonly<Record<string, unknown>> {
  const joined: Record<string, unknown> = { ...unprocessed };
  const own = answer[field];
  for (const [table, request] of Object.entries(isRecord(own) ? own : {})) {
    joined[table] = withEntries(request, [...entriesOf(request), ...entriesOf(unprocessed[table])]);
  }
  return { ...answer, [field]: joined };
}
