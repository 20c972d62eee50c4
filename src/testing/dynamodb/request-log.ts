import { type DynamoRequest, isRecord, isWrite } from './dynamo-request.js';
import type { Fault } from './fault.js';

/** One request that came to the proxy, and what became of it. */
export interface RecordedRequest {
  readonly operation: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly faults: readonly Fault['kind'][];
  /** Whether the engine got it. */
  readonly forwarded: boolean;
  /** What the client was answered; null while it waits, and if it never was. */
  readonly answer: { readonly status: number; readonly body: Readonly<Record<string, unknown>> } | null;
  /** What the engine says that it consumed, also if its answer was lost. */
  readonly consumed: readonly ConsumedCapacity[];
}

/** DynamoDB's ConsumedCapacity, as far as it matters here. */
export interface ConsumedCapacity {
  readonly TableName?: string;
  readonly CapacityUnits?: number;
  readonly Table?: { readonly CapacityUnits?: number };
  readonly GlobalSecondaryIndexes?: Readonly<Record<string, { readonly CapacityUnits?: number }>>;
}

/** What came to a proxy. */
export interface RequestLog {
  /** How many requests came, of one operation or of all, whatever became of them. */
  readonly count: (operation?: string) => number;
  /** How many requests came of each operation. */
  readonly byOperation: () => Readonly<Record<string, number>>;
  /** The requests in order of arrival; empty unless the proxy records. */
  readonly recorded: readonly RecordedRequest[];
  /** Capacity units that the engine reported; zero unless the proxy records. A failed condition reports none. */
  readonly consumed: () => { readonly readUnits: number; readonly writeUnits: number };
  /** Forgets everything so far. */
  readonly clear: () => void;
}

/** A record that is still being filled in. */
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

  /** Counts a request; gives its record to be filled in, or null if none is kept. */
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
