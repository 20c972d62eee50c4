import { PAIRS, sized } from './settings.js';
import { printRatio, spreadOf } from './spread.js';
import { figure, inColumns } from './table.js';

/** One size of what grows. */
export interface Point {
  readonly label: string;
  readonly call: () => Promise<void> | void;
  /** The bytes that one bucket or entry takes, if they are measured. */
  readonly bytes?: number;
}

const BATCH_MS = 100;
const CALLS_BETWEEN_LOOKS = 16;

/** The header of the lines with `|`, of which `grep '^|'` makes a table for docs/benchmarks.md. */
export function printTableHead(): void {
  console.log('| what grows | sizes | CPU of a call, us | to the first | bytes each |\n|---|---|---|---|---|');
}

/** Prints the CPU of one call at each point. Each ratio is of one round, in which every point has its turn. */
export async function printSeries(title: string, points: readonly Point[]): Promise<void> {
  process.stderr.write(`${title}\n`);
  const cpuNs = points.map((): number[] => []);
  for (let round = -1; round < PAIRS; round++) {
    for (const [at, { call }] of points.entries()) {
      const ns = await cpuNsPerCall(call);
      // The first round only warms up.
      if (round >= 0) cpuNs[at]?.push(ns);
    }
  }
  const first = cpuNs[0] ?? [];
  const measured = points.map(({ label, bytes }, at) => {
    const all = cpuNs[at] ?? [];
    const ratio = spreadOf(all.map((ns, round) => ns / (first[round] ?? Number.NaN)));
    return { label, ns: spreadOf(all).median, ratio, bytes: bytes === undefined ? '-' : bytes.toFixed(0) };
  });
  const lines = measured.map(({ label, ns, ratio, bytes }) => [label, figure(ns), printRatio(ratio), bytes]);
  console.log(`\n${inColumns([[title, 'CPU ns', 'to the first', 'bytes each'], ...lines], new Set([0]))}`);
  const cells = [
    measured.map(({ label }) => Number(label).toLocaleString('en')),
    measured.map(({ ns }) => figure(ns / 1_000)),
    measured.map(({ ratio }) => `${ratio.median.toFixed(2)}x`),
    measured.some(({ bytes }) => bytes !== '-') ? measured.map(({ bytes }) => bytes) : ['-'],
  ];
  console.log(`| ${[title, ...cells.map((each) => each.join('; '))].join(' | ')} |`);
}

async function cpuNsPerCall(call: Point['call']): Promise<number> {
  const endMs = performance.now() + sized(BATCH_MS);
  const start = process.cpuUsage();
  let calls = 0;
  while (calls === 0 || performance.now() < endMs) {
    for (let more = 0; more < CALLS_BETWEEN_LOOKS; more++) {
      const answer = call();
      if (answer instanceof Promise) await answer;
    }
    calls += CALLS_BETWEEN_LOOKS;
  }
  const { user, system } = process.cpuUsage(start);
  return ((user + system) / calls) * 1_000;
}
