import { systemClock } from '../../../src/clock.js';
import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import { processBatch } from '../../../src/backends/dynamodb/stream/process-batch.js';
import type { StreamApi } from '../../../src/backends/dynamodb/stream/worker/stream-api.js';

/**
 * Counts usage from an engine's stream on demand, so that a test need not wait for a worker. Local engines show all that was
 * written before the call, and their shards do not close. Throws for a record that cannot be counted.
 */
export class StreamFold {
  readonly #table: Table;
  readonly #stream: StreamApi;
  readonly #iterators = new Map<string, string>();

  constructor(table: Table, stream: StreamApi) {
    this.#table = table;
    this.#stream = stream;
  }

  async foldAll(): Promise<void> {
    for (const { id } of await this.#stream.listShards()) await this.#foldShard(id);
  }

  async #foldShard(id: string): Promise<void> {
    for (;;) {
      const iterator = this.#iterators.get(id) ?? (await this.#stream.locate(id, null));
      const page = await this.#stream.read(iterator);
      if (page === null || page.next === null) throw new Error(`shard ${id} of a local engine ended`);
      await this.#count(page.records);
      this.#iterators.set(id, page.next);
      if (page.records.length === 0) return;
    }
  }

  async #count(records: readonly unknown[]): Promise<void> {
    const fail = (error: unknown): never => {
      throw error;
    };
    const tools = {
      table: this.#table,
      archive: null,
      splitAhead: null,
      now: () => systemClock.now(),
      onPoison: ({ reason }: { readonly reason: string }) => fail(new Error(`poison in the stream: ${reason}`)),
      onError: fail,
    };
    const { failures } = await processBatch(tools, this.#stream.label, records);
    for (const { error } of failures) throw error;
  }
}
