import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RateLimiter } from 'headgate';
import { latenciesOfTakers } from './file-takers.js';
import { PAIRS, sized } from './settings.js';
import { quantile } from './spread.js';
import { type Row, within } from './table.js';

const PLAN_MS = 10_000;
const ENTITIES = sized(5_000);
const P99_MEDIANS = 20;

/** What Headgate has set itself: the peer of each row is the most that it may be. */
export async function* budgetRows(): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-budgets-'));
  try {
    yield within(`plan of ${ENTITIES} entities on a file`, 'ms', await planMs(folder), PLAN_MS);
    const latenciesUs = await latenciesOfTakers(join(folder, 'shared.db'));
    const tails = latenciesUs.map((part) => quantile(part, 0.99) / quantile(part, 0.5));
    yield within('file, 4 processes: p99 / median of an acquire', 'x', tails, P99_MEDIANS);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** In each round, the slowest of three plans: of an empty store, of what it has, and of nothing. */
async function planMs(folder: string): Promise<readonly number[]> {
  const manifest = { namespace: 'default', system: { limits: ['rpm:100/min'] }, entities: entitiesOf(ENTITIES) };
  await using limiter = await RateLimiter.open(`file:${join(folder, 'plan.db')}`);
  const slowestMs = Array.from({ length: PAIRS }, () => 0);
  const plan = async (data: typeof manifest | { readonly namespace: string }): Promise<void> => {
    for (let round = 0; round < PAIRS; round++) {
      const startMs = performance.now();
      await limiter.manifest.plan(data);
      slowestMs[round] = Math.max(slowestMs[round] ?? 0, performance.now() - startMs);
    }
  };
  await plan(manifest);
  await limiter.manifest.apply(manifest);
  await plan(manifest);
  await plan({ namespace: 'default' });
  return slowestMs;
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
