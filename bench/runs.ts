import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus, release, type } from 'node:os';
import { FLAGS, RUNS, SKIPPED } from './settings.js';
import { mergeRows, printTable, type Row } from './table.js';

/** The rows that one process of a part has measured. */
interface Measured {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Parts that print tables of their own or figures of a simulation, or watch one bucket: one run of them has all pairs. */
const ONCE: ReadonlySet<string> = new Set(['ablation', 'growth', 'http-soak', 'own-cpu', 'processes', 'rivals']);
/** Packages whose versions decide the figures. */
const PACKAGES = [
  '@dynoxide/linux-x64',
  '@aws-sdk/client-dynamodb',
  'rate-limiter-flexible',
  'libsql',
  'hono',
  'ioredis',
];

/** Runs each part in a separate process, so that optimisations for one part do not slow the other down. */
export async function runParts(parts: readonly string[]): Promise<void> {
  const startMs = performance.now();
  printPlace();
  for (const part of parts.filter((each) => !SKIPPED.includes(each))) {
    const runs = ONCE.has(part) ? 1 : RUNS;
    const measured: Measured[] = [];
    for (let run = 1; run <= runs; run++) {
      if (runs > 1) process.stderr.write(`${part}, run ${run} of ${runs}\n`);
      measured.push(...(await runPart(part, runs)));
    }
    const [first] = measured;
    const all = measured.map(({ rows }) => rows);
    if (first !== undefined) printTable(`${first.title}; ${all.length} runs`, mergeRows(all));
  }
  console.log(`All parts took ${Math.round((performance.now() - startMs) / 1_000)} s`);
}

/** Called in the process of a part. */
export function sendRows(measured: Measured): void {
  process.send?.(measured);
}

async function runPart(part: string, runs: number): Promise<readonly Measured[]> {
  // Infinite ratios are not JSON.
  const child = fork(process.argv[1] ?? '', [part, ...FLAGS, `--runs=${runs}`], { serialization: 'advanced' });
  const measured: Measured[] = [];
  child.on('message', (message) => measured.push(message as Measured));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) process.exitCode = 1;
  return measured;
}

/** Where the figures were measured: without it they cannot be compared. */
function printPlace(): void {
  const processors = cpus();
  const machine = `${processors.length} x ${processors[0]?.model ?? 'unknown processor'}, ${type()} ${release()}`;
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version?: string }>>;
  };
  const versions = PACKAGES.map((name) => `${name} ${packages[`node_modules/${name}`]?.version ?? 'unknown'}`);
  console.log(`${new Date().toISOString().slice(0, 16)}Z, ${machine}, Node ${process.version}\n${versions.join(', ')}`);
}
