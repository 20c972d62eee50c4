import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Limit } from '../../../src/core/limit.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type BatchTools, processBatch } from '../../../src/backends/dynamodb/stream/process-batch.js';
import { Random } from '../../../src/testing/conformance/kit/random.js';
import type { DynamoWorld, Space } from '../dynamodb/world.js';
import { ended, forkable } from '../processes/fork-bundled.js';
import { batchTools, failingTable, openStream, readRecords, workOff } from './world.js';
import type { WorkerOrder } from './worker.js';
import { makeTraffic, readTotals, RESOURCES, type Totals, UsageLedger } from './usage-ledger.js';

const LIMITS = [Limit.perMinute('rpm', 6_000), Limit.perMinute('tpm', 600_000)];
const TIMEOUT_MS = 120_000;
const MAX_PER_BATCH = 100;
const FAILING_PERCENT = 5;
/** Two workers with the same name treat each other's shards as their own, so that they race for every shard. */
const OWNER = 'racer';

export interface Spending {
  readonly space: Space;
  readonly limiter: RateLimiter;
  readonly ledger: UsageLedger;
  /** Spends at random through two limiters with separate caches, and records it in the ledger. */
  readonly spend: (calls: number) => Promise<void>;
}

export async function openSpending(world: DynamoWorld, seed: number): Promise<Spending> {
  const space = await world.space();
  // Long timeouts: the ledger cannot know what a call took that timed out.
  const patient = { limits: LIMITS, timeouts: { callMs: TIMEOUT_MS, acquireMs: TIMEOUT_MS } };
  const limiters = [await space.open(patient), await space.open(patient)] as const;
  const ledger = new UsageLedger();
  const random = new Random(seed);
  const spend = async (calls: number): Promise<void> => makeTraffic(limiters, space.clock, random, calls, ledger);
  return { space, limiter: limiters[0], ledger, spend };
}

/**
 * Counts concurrent spending with two worker processes that read the same shards. At random times one of them is killed
 * with -9 and replaced. Returns the usage records.
 */
export async function countByKilledWorkers(
  world: DynamoWorld,
  spending: Spending,
  { calls, kills, seed }: { readonly calls: number; readonly kills: number; readonly seed: number },
): Promise<{ readonly usage: Totals; readonly signals: readonly (number | string)[] }> {
  const random = new Random(seed);
  const start = await forkable(new URL('./worker.ts', import.meta.url));
  const { endpoint, region } = world.engine;
  const fork = (): ChildProcess => {
    // Some workers are killed while they write days and months, and some before they write them at all. Then others
    // must.
    const rollupMs = random.pick([50, 60_000]);
    const order: WorkerOrder = { table: world.table.name, region, endpoint, owner: OWNER, rollupMs };
    return start(JSON.stringify(order));
  };
  const signals: (number | string)[] = [];
  const kill = async (child: ChildProcess): Promise<void> => {
    const exit = ended(child);
    child.kill('SIGKILL');
    signals.push(await exit);
  };
  const workers = [fork(), fork()];
  for (let killed = 0; killed < kills; killed++) {
    const [place, doomed] = random.pick([...workers.entries()]);
    const spent = spending.spend(Math.ceil(calls / kills));
    for (let words = random.whole(1, 9); words > 0; words--) await once(doomed, 'message');
    await kill(doomed);
    workers[place] = fork();
    await spent;
  }
  await Promise.all(workers.map(kill));
  await workOff(world, { owner: OWNER });
  return { usage: await readTotals(spending.limiter, RESOURCES), signals };
}

/**
 * Counts all spending again, with two racing readers, in another table, because the writes of dynoxide become slower as
 * the stream of their table grows. Returns the usage records.
 */
export async function countByShakyReaders(
  world: DynamoWorld,
  { space }: Spending,
  elsewhere: DynamoWorld,
  seed: number,
): Promise<{ readonly usage: Totals; readonly repeated: number }> {
  const stream = await openStream(world);
  const copy = await elsewhere.space();
  const records = copyOf(await readRecords(stream), space.ns, copy.ns);
  stream.close();
  const tools = batchTools(failingTable(elsewhere.table, new Random(seed), FAILING_PERCENT));
  const readers = [1, 2].map((more) => new ShakyReader(tools, stream.label, new Random(seed + more)));
  await Promise.all(readers.map(async (reader) => reader.read(records)));
  await copy.clock.advance(space.clock.now() - copy.clock.now());
  const usage = await readTotals(await copy.open({ limits: LIMITS }), RESOURCES);
  return { usage, repeated: readers.reduce((sum, reader) => sum + reader.repeated, 0) };
}

/** The bucket records of one namespace, rewritten to another namespace. */
function copyOf(records: readonly unknown[], from: string, to: string): readonly unknown[] {
  return records
    .map((record) => JSON.stringify(record))
    .filter((text) => text.includes(`"${from}/BUCKET#`))
    .map((text) => JSON.parse(text.replaceAll(`"${from}/`, `"${to}/`)) as unknown);
}

/**
 * A reader that gets records twice, repeats from a failed record, repeats a batch in two halves as if its answer was
 * lost, sometimes restarts from its last checkpoint, and reads the second half of all records again.
 */
class ShakyReader {
  readonly #tools: BatchTools;
  readonly #label: string;
  readonly #random: Random;
  repeated = 0;

  constructor(tools: BatchTools, label: string, random: Random) {
    this.#tools = tools;
    this.#label = label;
    this.#random = random;
  }

  async read(records: readonly unknown[]): Promise<void> {
    let checkpoint = 0;
    for (let done = 0; done < records.length;) {
      done += await this.#handle(records.slice(done, done + this.#random.whole(1, MAX_PER_BATCH)));
      // The checkpoint only moves forwards, so that the reader reaches the end.
      if (this.#oneOf(4)) checkpoint = done;
      if (this.#oneOf(8)) {
        this.repeated += done - checkpoint;
        done = checkpoint;
      }
    }
    const half = records.length >> 1;
    for (let done = half; done < records.length;) done += await this.#handle(records.slice(done, done + MAX_PER_BATCH));
    this.repeated += records.length - half;
  }

  /** Returns how many records from the start of the batch are done. */
  async #handle(batch: readonly unknown[]): Promise<number> {
    const given = this.#oneOf(4) ? batch.flatMap((record) => [record, record]) : batch;
    const { failures } = await processBatch(this.#tools, this.#label, given);
    const [failure] = failures;
    if (failure !== undefined) return batch.indexOf(given[failure.at]);
    if (batch.length === 1 || !this.#oneOf(6)) return batch.length;
    this.repeated += batch.length;
    const half = batch.length >> 1;
    const done = await this.#handle(batch.slice(0, half));
    return done < half ? done : half + (await this.#handle(batch.slice(half)));
  }

  #oneOf(many: number): boolean {
    return this.#random.whole(1, many) === 1;
  }
}
