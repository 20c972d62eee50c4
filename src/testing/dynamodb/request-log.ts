import { type DynamoRequest, isRecord, isWrite } from './dynamo-request.js';
import type { Fault } from './fault.js';

/** One request that the proxy received, and its outcome. */
export interface RecordedRequest {
  readonly operation: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly faults: readonly Fault['kind'][];
  /** Whether the request was forwarded to the engine. */
  readonly forwarded: boolean;
  /** The answer that the client got; null if there is none, or not yet. */
  readonly answer: { readonly status: number; readonly body: Readonly<Record<string, unknown>> } | null;
  /** The consumed capacity that the engine reported, also if its answer was lost. */
  readonly consumed: readonly ConsumedCapacity[];
}

/** The fields of DynamoDB's ConsumedCapacity that the log uses. */
export interface ConsumedCapacity {
  readonly TableName?: string;
  readonly CapacityUnits?: number;
  readonly Table?: { readonly CapacityUnits?: number };
  readonly GlobalSecondaryIndexes?: Readonly<Record<string, { readonly CapacityUnits?: number }>>;
}

/** The requests that a proxy received. */
export interface RequestLog {
  /** The number of requests, of one operation or of all, whatever their outcome. */
  readonly count: (operation?: string) => number;
  /** The number of requests of each operation. */
  readonly byOperation: () => Readonly<Record<string, number>>;
  /** The requests in the order of arrival; empty unless the proxy records. */
  readonly recorded: readonly RecordedRequest[];
  /** Capacity units that the engine reported; zero unless the proxy records. A failed condition reports none. */
  readonly consumed: () => { readonly readUnits: number; readonly writeUnits: number };
  /** Removes all records and counts. */
  readonly clear: () => void;
}

/** A record that is not complete yet. */
export type OpenRecord = { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] };

export class ProxyLog implements RequestLog {
  readonly #counts = new Map<string, number>();
  readonly #records: boolean;
  #recorded: OpenRecord[] = [];

  constructor(records: boolean) {
    this.#records = records;
  }

  get recorded(): readonly RecordedRequest[] {
    return this.#recorded;
  }

  /** Counts a request. Returns its record to fill in; null if the proxy does not record. */
  add(request: DynamoRequest, faults: readonly Fault['kind'][]): OpenRecord | null {
    const { operation } = request;
    this.#counts.set(operation, this.count(operation) + 1);
    if (!this.#records) return null;
    const entry: OpenRecord = { operation, body: request.body, faults, forwarded: false, answer: null, consumed: [] };
    this.#recorded.push(entry);
    return entry;
  }

  count(operation?: string): number {
    if (operation !== undefined) return this.#counts.get(operation) ?? 0;
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  byOperation(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  consumed(): { readonly readUnits: number; readonly writeUnits: number } {
    let readUnits = 0;
    let writeUnits = 0;
    for (const request of this.#recorded) {
      const units = request.consumed.reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
      if (isWrite(request)) writeUnits += units;
      else readUnits += units;
    }
    return { readUnits, writeUnits };
  }

  clear(): void {
    this.#counts.clear();
    this.#recorded = [];
  }
}

/** The ConsumedCapacity of an answer: one for a single item, a list for batches and transactions. */
export function parseConsumed(answer: Readonly<Record<string, unknown>>): readonly ConsumedCapacity[] {
  const consumed = answer['ConsumedCapacity'];
  return (Array.isArray(consumed) ? consumed : [consumed]).filter(isRecord);
}
