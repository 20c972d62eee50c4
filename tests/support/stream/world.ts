import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import type { Transport } from '../../../src/backends/dynamodb/client/transport.js';
import type { Archive } from '../../../src/backends/dynamodb/stream/archive/archive.js';
import type { Poison } from '../../../src/backends/dynamodb/stream/decode.js';
import type { BatchTools } from '../../../src/backends/dynamodb/stream/process-batch.js';
import { openSdkStream } from '../../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import type { StreamApi } from '../../../src/backends/dynamodb/stream/worker/stream-api.js';
import type { WorkerOptions } from '../../../src/backends/dynamodb/stream/worker/worker-options.js';
import { runWorker } from '../../../src/backends/dynamodb/stream/worker/worker.js';
import type { WorkerProgress } from '../../../src/backends/dynamodb/stream/worker/worker-progress.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import type { DynamoWorld } from '../dynamodb/world.js';

export async function openStream(world: DynamoWorld): Promise<StreamApi> {
  const { endpoint, region } = world.engine;
  return openSdkStream(world.table, { endpoint, region });
}

/** All records of all current shards. */
export async function readRecords(stream: StreamApi): Promise<unknown[]> {
  const records: unknown[] = [];
  for (const { id } of await stream.listShards()) {
    for (let place: string | null = await stream.locate(id, null); place !== null;) {
      const page = await stream.read(place);
      if (page === null || page.records.length === 0) break;
      records.push(...page.records);
      place = page.next;
    }
  }
  return records;
}

export interface Heard {
  readonly poison: Poison[];
  readonly errors: unknown[];
}

export function batchTools(table: Table, overrides: Partial<BatchTools> = {}): BatchTools & Heard {
  const poison: Poison[] = [];
  const errors: unknown[] = [];
  return {
    table,
    archive: null,
    splitAhead: null,
    now: () => 0,
    onPoison: (record) => poison.push(record),
    onError: (error) => errors.push(error),
    poison,
    errors,
    ...overrides,
  };
}

export function archiveInMemory(): Archive & { readonly files: Map<string, Uint8Array>; failNext: number } {
  const files = new Map<string, Uint8Array>();
  return {
    files,
    failNext: 0,
    async put(key, bytes) {
      if (this.failNext > 0) {
        this.failNext -= 1;
        throw new Error('the archive is full');
      }
      files.set(key, bytes);
    },
  };
}

/** A table of which some writes fail without a retry, half of them after they have landed. */
export function failingTable(table: Table, random: Random, percent: number): Table {
  const send: Transport['send'] = async (operation, input, deadline) => {
    const fails = operation === 'UpdateItem' && random.whole(1, 100) <= percent;
    if (fails && random.whole(0, 1) === 0) throw new TypeError('it was not sent');
    const output = await table.transport.send(operation, input, deadline);
    if (fails) throw new TypeError('the answer was lost');
    return output;
  };
  return { ...table, transport: { ...table.transport, send } };
}

/** Runs a worker until it has read every shard to its end. */
export async function workOff(world: DynamoWorld, options: Partial<WorkerOptions> = {}): Promise<WorkerProgress> {
  const { endpoint, region } = world.engine;
  const stop = new AbortController();
  let last: WorkerProgress | null = null;
  await runWorker({
    table: world.table.name,
    endpoint,
    region,
    pollMs: 5,
    discoverMs: 20,
    progressMs: 5,
    ...options,
    signal: stop.signal,
    onProgress: (progress) => {
      options.onProgress?.(progress);
      last = progress;
      if (progress.caughtUp && progress.shards > 0) stop.abort();
    },
  });
  if (last === null) throw new Error('the worker told nothing');
  return last;
}
