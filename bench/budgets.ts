import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RateLimiter } from 'headgate';
import { latenciesOfTakers } from './file-takers.js';
import { interleave, median } from './interleave.js';
import type { Row } from './table.js';

const IMPORT_MS = 15;
const IMPORTS = 9;
const PLAN_MS = 10_000;
const ENTITIES = 5_000;
const P99_MEDIANS = 20;

/** What Headgate has set itself: the peer of each row is the most that it may be. */
export async function* budgetRows(): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-budgets-'));
  try {
    yield within('import headgate, over an empty module', 'ms', await importMs(folder), IMPORT_MS);
    yield within(`plan of ${ENTITIES} entities on a file`, 'ms', await planMs(folder), PLAN_MS);
    const latenciesUs = await latenciesOfTakers(join(folder, 'shared.db'));
    const at = (part: number): number => latenciesUs[Math.floor(latenciesUs.length * part)] ?? Number.NaN;
    yield within(`file, 4 processes: p99 / ${P99_MEDIANS} medians`, 'us', at(0.99), P99_MEDIANS * at(0.5));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function within(name: string, unit: string, ours: number, most: number): Row {
  return { name, unit, ours, theirs: most, ratio: ours / most, goal: 1, goalIs: 'most' };
}

/** Of processes of their own, by turns: what slows the machine down slows both. */
async function importMs(folder: string): Promise<number> {
  const [empty, measure] = [join(folder, 'empty.mjs'), join(folder, 'measure.mjs')];
  writeFileSync(empty, 'export {};');
  writeFileSync(
    measure,
    `const startMs = performance.now();
     await import(process.argv[2]);
     console.log(performance.now() - startMs);`,
  );
  const took = async (url: string): Promise<number> =>
    Number(execFileSync(process.execPath, [measure, url], { encoding: 'utf8' }));
  const rounds = await interleave(
    IMPORTS,
    async () => took(import.meta.resolve('headgate')),
    async () => took(pathToFileURL(empty).href),
  );
  return median(rounds.map(({ ours }) => ours)) - median(rounds.map(({ theirs }) => theirs));
}

/** The slowest of three plans: of an empty store, of what it has, and of nothing. */
async function planMs(folder: string): Promise<number> {
  const manifest = { namespace: 'default', system: { limits: ['rpm:100/min'] }, entities: entitiesOf(ENTITIES) };
  await using limiter = await RateLimiter.open(`file:${join(folder, 'plan.db')}`);
  const tookMs: number[] = [];
  const plan = async (data: typeof manifest | { readonly namespace: string }): Promise<void> => {
    const startMs = performance.now();
    await limiter.manifest.plan(data);
    tookMs.push(performance.now() - startMs);
  };
  await plan(manifest);
  await limiter.manifest.apply(manifest);
  await plan(manifest);
  await plan({ namespace: 'default' });
  return Math.max(...tookMs);
}

/** In a tree of four levels, each with a default and the limits of a resource. */
function entitiesOf(count: number) {
  const entities = Array.from({ length: count }, (_, at) => {
    const parent = at < 10 ? {} : { parent: `user-${Math.floor(at / 10)}`, cascade: true };
    const limits = {
      default: { limits: [`rpm:${at + 1}/min`, 'tpm:10000/min:50000'] },
      resources: { 'gpt-4': { limits: ['rpm:600/min', 'slots:4/concurrent'] } },
    };
    return [`user-${at}`, { name: `User ${at}`, metadata: { tier: 'gold' }, ...parent, ...limits }] as const;
  });
  return Object.fromEntries(entities);
}
