import type { Table } from '../../client/requests.js';
import { type SdkOptions, sdkTransport } from '../../client/sdk-transport.js';
import { type BucketChange, decodeChange, type Poison } from '../decode.js';
import { openSdkStream, type SdkStreamOptions } from './sdk-stream.js';
import { type StreamApi, streamTrimmed } from './stream-api.js';
import { poisonOf, writeUsage } from '../usage/write-usage.js';

/** How far a stream has been counted: per shard of it the last sequence number, or null for one that is at its end. */
export interface TailPosition {
  readonly label: string;
  readonly shards: Readonly<Record<string, string | null>>;
}

export interface TailOptions extends SdkOptions, SdkStreamOptions {
  /** The table's name. */
  readonly table: string;
  /** Where to go on: from the oldest change that the stream still has unless given. */
  readonly from?: TailPosition;
  /** Is told of records that were passed over: they cannot be understood, or DynamoDB refuses for ever to count them. */
  readonly onPoison?: (poison: Poison) => void;
}

export interface TailProgress {
  /** How many records were read, of whatever kind. */
  readonly records: number;
}

interface Lane {
  readonly id: string;
  readonly parentId: string | null;
  place: string | null;
  last: string | null;
  closed: boolean;
}

/** Follows a table's change stream and counts usage from it. Opens the stream; reads no record yet. */
export async function openTail(options: TailOptions): Promise<Tail> {
  const transport = sdkTransport(options);
  const table: Table = { name: options.table, transport, random: Math.random };
  try {
    return new Tail(table, await openSdkStream(table, options), options);
  } catch (error) {
    transport.close();
    throw error;
  }
}

/** One reader of all shards of a stream: a shard is read when its parent has been read to the end. */
export class Tail {
  readonly #table: Table;
  readonly #stream: StreamApi;
  readonly #onPoison: (poison: Poison) => void;
  readonly #lanes = new Map<string, Lane>();
  /** Where to begin, until the shards are known. */
  #from: TailPosition['shards'];
  /** Whether there may be shards that are not in `#lanes`. */
  #mayGrow = true;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(table: Table, stream: StreamApi, { from, onPoison }: Pick<TailOptions, 'from' | 'onPoison'>) {
    this.#table = table;
    this.#stream = stream;
    this.#onPoison = onPoison ?? (() => {});
    // A stream of another label is another stream: of this one nothing has been counted.
    this.#from = from?.label === stream.label ? from.shards : {};
  }

  /**
   * Counts everything that the stream shows now. Local engines show all that was written before the call. DynamoDB may
   * answer with nothing in the middle of a shard: there it is the end of a round, and the next call goes on.
   * Rejects if something could not be counted: the next call begins with it.
   */
  async foldAll(): Promise<TailProgress> {
    const mine = this.#turn.then(
      async () => this.#foldRounds(),
      async () => this.#foldRounds(),
    );
    this.#turn = mine;
    return mine;
  }

  /** What is counted for certain, to go on from. */
  position(): TailPosition {
    const shards: Record<string, string | null> = {};
    for (const { id, last, closed } of this.#lanes.values()) {
      if (closed) shards[id] = null;
      else if (last !== null) shards[id] = last;
    }
    return { label: this.#stream.label, shards };
  }

  close(): void {
    this.#stream.close();
    this.#table.transport.close();
  }

  async #foldRounds(): Promise<TailProgress> {
    let records = 0;
    this.#mayGrow ||= this.#hasLooseEnd();
    do {
      if (this.#mayGrow) await this.#discover();
      const ready = [...this.#lanes.values()].filter((lane) => this.#isReady(lane));
      const read = await Promise.all(ready.map(async (lane) => this.#drain(lane)));
      records += read.reduce((sum, count) => sum + count, 0);
    } while (this.#mayGrow);
    return { records };
  }

  /** Shards are only added as children of one that was closed; its children may show a little later. */
  #hasLooseEnd(): boolean {
    const parents = new Set([...this.#lanes.values()].map(({ parentId }) => parentId));
    return [...this.#lanes.values()].some(({ id, closed }) => closed && !parents.has(id));
  }

  async #discover(): Promise<void> {
    const shards = await this.#stream.listShards();
    const listed = new Set(shards.map(({ id }) => id));
    for (const { id, closed } of this.#lanes.values()) if (closed && !listed.has(id)) this.#lanes.delete(id);
    const lost = Object.entries(this.#from).find(([id, last]) => last !== null && !listed.has(id));
    if (lost !== undefined) throw streamTrimmed(this.#table.name);
    for (const { id, parentId } of shards) {
      if (this.#lanes.has(id)) continue;
      const from = this.#from[id];
      this.#lanes.set(id, { id, parentId, place: null, last: from ?? null, closed: from === null });
    }
    this.#from = {};
    this.#mayGrow = false;
  }

  #isReady({ parentId, closed }: Lane): boolean {
    return !closed && (parentId === null || this.#lanes.get(parentId)?.closed !== false);
  }

  /** To the end of what there is. A page is left only when it has been counted. */
  async #drain(lane: Lane): Promise<number> {
    for (let records = 0; ;) {
      lane.place ??= await this.#stream.locate(lane.id, lane.last);
      const page = await this.#stream.read(lane.place);
      if (page === null) {
        lane.place = null;
        continue;
      }
      await this.#count(page.records);
      records += page.records.length;
      lane.last = sequenceNumber(page.records.at(-1)) ?? lane.last;
      lane.place = page.next;
      if (page.next === null) {
        lane.closed = true;
        this.#mayGrow = true;
      }
      if (lane.closed || page.records.length === 0) return records;
    }
  }

  async #count(records: readonly unknown[]): Promise<void> {
    const changes: BucketChange[] = [];
    for (const record of records) {
      const change = decodeChange(record, this.#stream.label);
      if (change.kind === 'bucket') changes.push(change);
      else if (change.kind === 'poison') this.#onPoison(change);
    }
    await writeUsage(this.#table, changes, (refused) => this.#onPoison(poisonOf(refused)));
  }
}

/** As the stream itself spells it. */
function sequenceNumber(record: unknown): string | undefined {
  return (record as { readonly dynamodb?: { readonly SequenceNumber?: string } } | undefined)?.dynamodb?.SequenceNumber;
}
