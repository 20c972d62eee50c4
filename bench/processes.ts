import { type Engine, startEngine } from 'headgate/testing/dynamodb';
import type { Taken, TakerOrder } from './bucket-taker.js';
import { clientOf, createTables, leanReach } from './dynamodb-peers.js';
import { comparisonOf } from './interleave.js';
import { PAIRS, PROCESS_COUNTS, sized } from './settings.js';
import { printRatio, quantile, spreadOf } from './spread.js';
import { figure, inColumns, type Row, within } from './table.js';
import { TakerPool } from './taker-pool.js';

const CALLERS = 64;
/** The goals are about this many processes. */
const GOAL_PROCESSES = 8;
/** In less time a process that shares its processor with others may not grant anything. */
const LEAST_MS = 250;
const BARE = 'one bare writer';

/** The state of the bucket, and the limit that brings it about. */
const BUCKETS = [
  { name: 'with room below its capacity', limit: 'rpd:1000000000/day', takeFirst: 500_000_000, waitMs: 0 },
  { name: 'full (the form that sets)', limit: 'rps:1000000000/sec', takeFirst: 0, waitMs: 0 },
  { name: 'exhausted at 2,000 a second', limit: 'rps:2000/sec', takeFirst: 0, waitMs: 5_000 },
] as const;

/** One round of all processes on one bucket. */
interface Sample {
  readonly grantsPerSec: number;
  readonly bareGrantsPerSec: number;
  readonly writesPerGrant: number;
  readonly refusedShare: number;
  readonly p99Ms: number;
  /** The grants of the process with the fewest, as a share of those of the process with the most. */
  readonly fairness: number;
}

/** Prints a table of all counts, and returns the rows with goals. */
export async function processRows(): Promise<readonly Row[]> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  leanReach(engine);
  try {
    await createTables(client);
  } finally {
    client.destroy();
  }
  const lines: string[][] = [
    ['bucket', 'processes', 'grants/s', 'bare/s', 'ratio', 'writes/grant', 'refused', 'p99 ms', 'least/most'],
  ];
  const rows: Row[] = [];
  for (const count of PROCESS_COUNTS) {
    process.stderr.write(`${count} processes\n`);
    const measured = await measure(engine, count);
    for (const [name, samples] of measured) {
      lines.push(lineOf(name, count, samples));
      if (count === GOAL_PROCESSES) rows.push(...goalRows(name, samples));
    }
  }
  console.log(`\nMany processes, one bucket, ${CALLERS} callers in each process`);
  console.log(`Bare: one process that sends UpdateItem with the SDK, with as many calls in flight as all processes\n`);
  console.log(inColumns(lines, new Set([0])));
  return rows;
}

/** In each round every bucket and the bare writer get their turn, so that each ratio is of one time of the machine. */
async function measure(engine: Engine, count: number): Promise<ReadonlyMap<string, readonly Sample[]>> {
  await using takers = new TakerPool(count);
  await using bare = new TakerPool(1);
  const { endpoint, region } = engine;
  const common = { endpoint, region, settleMs: LEAST_MS + sized(250), measuredMs: LEAST_MS + sized(750) };
  // The answers of one process come in bursts of all calls in flight, of which a window would cut off a part.
  const whole = { settleMs: 0, measuredMs: common.settleMs + common.measuredMs };
  const bareOrder = { ...common, ...whole, bucket: BARE, limit: null, takeFirst: 0, waitMs: 0 };
  const turns = [
    ...BUCKETS.map(({ name, ...bucket }) => ({
      name: name as string,
      run: async (callers: number) => {
        const order = { ...common, ...bucket, bucket: `${bucket.limit}-${count}`.replaceAll(/[:/]/g, '-'), callers };
        return takers.tell((taker): TakerOrder => (taker === 0 ? order : { ...order, takeFirst: 0 }));
      },
    })),
    { name: BARE, run: async (callers: number) => bare.tell(() => ({ ...bareOrder, callers: callers * count })) },
  ];
  for (const { run } of turns) await run(0);
  const samples = new Map<string, Sample[]>(BUCKETS.map(({ name }) => [name, []]));
  for (let round = -1; round < PAIRS; round++) {
    const taken = new Map<string, readonly Taken[]>();
    for (const { name, run } of round % 2 === 0 ? turns : turns.toReversed()) taken.set(name, await run(CALLERS));
    // The first round only warms up.
    if (round < 0) continue;
    for (const { name } of BUCKETS) {
      samples.get(name)?.push(sampleOf(taken.get(name) ?? [], taken.get(BARE) ?? []));
    }
  }
  return samples;
}

function sampleOf(taken: readonly Taken[], bare: readonly Taken[]): Sample {
  const sum = (of: 'grants' | 'writes' | 'refused'): number => taken.reduce((total, one) => total + one[of], 0);
  const grants = taken.map((one) => one.grants);
  const latenciesMs = taken.flatMap((one) => [...one.latenciesMs]).toSorted((a, b) => a - b);
  return {
    grantsPerSec: grantsPerSec(taken),
    bareGrantsPerSec: grantsPerSec(bare),
    writesPerGrant: sum('writes') / sum('grants'),
    refusedShare: sum('refused') / Math.max(1, sum('writes')),
    p99Ms: quantile(latenciesMs, 0.99),
    fairness: Math.min(...grants) / Math.max(...grants),
  };
}

function grantsPerSec(taken: readonly Taken[]): number {
  return taken.reduce((total, { grants, elapsedMs }) => total + (grants / elapsedMs) * 1_000, 0);
}

function lineOf(name: string, count: number, samples: readonly Sample[]): string[] {
  const median = (of: keyof Sample): number => spreadOf(samples.map((sample) => sample[of])).median;
  return [
    name,
    String(count),
    figure(median('grantsPerSec')),
    figure(median('bareGrantsPerSec')),
    printRatio(grantsToBare(samples).ratio),
    median('writesPerGrant').toFixed(3),
    `${(median('refusedShare') * 100).toFixed(0)} %`,
    median('p99Ms').toFixed(1),
    median('fairness').toFixed(2),
  ];
}

function grantsToBare(samples: readonly Sample[]) {
  return comparisonOf(samples.map((sample) => ({ ours: sample.grantsPerSec, theirs: sample.bareGrantsPerSec })));
}

/** The grants of an exhausted bucket have no goal: its rate bounds them. */
function goalRows(name: string, samples: readonly Sample[]): readonly Row[] {
  const of = `${GOAL_PROCESSES} x ${CALLERS} callers, ${name}`;
  const perGrant = samples.map((sample) => sample.writesPerGrant);
  const refused = samples.map((sample) => sample.refusedShare * 100);
  const grants = { name: `grants / bare writer, ${of}`, unit: 'ops/s', goal: 4, ...grantsToBare(samples) };
  return [
    ...(name.startsWith('exhausted') ? [] : [grants]),
    within(`writes per grant, ${of}`, 'writes', perGrant, 0.2),
    within(`refused writes, ${of}`, '%', refused, 30),
  ];
}
