import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { memory } from '../../src/backends/embedded/memory.js';
import type { Backend } from '../../src/backend.js';
import { ManifestFileError, parseManifestFile } from '../../src/cli/limits/manifest-file.js';
import { printManifest } from '../../src/cli/limits/print-manifest.js';
import { isHeadgateError } from '../../src/core/errors.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { logicalState } from '../support/models/logical-state.js';
import { mutate } from '../support/migration/mutate.js';
import { runs, runsAll } from '../support/runs.js';

const CASES = Number(process.env['FUZZ_CASES'] ?? runs(3_000));
/** A new store after this many cases. In between, the objects of earlier files are part of the next case. */
const CASES_PER_STORE = 50;
/** Processor time, which does not depend on other programs. */
const MAX_MS = 5_000;

function readCorpus(verdict: 'good' | 'bad'): readonly (readonly [name: string, bytes: Buffer])[] {
  const folder = new URL(`../corpus/manifest/${verdict}/`, import.meta.url);
  return readdirSync(fileURLToPath(folder)).map((name) => [name, readFileSync(new URL(name, folder))] as const);
}

const GOOD = readCorpus('good');
const BAD = readCorpus('bad');

interface Store {
  readonly backend: Backend;
  readonly limiter: RateLimiter;
}

/** A store with objects of every kind that a file can name. */
async function openStore(): Promise<Store> {
  const backend = memory();
  const limiter = await RateLimiter.open(backend);
  await limiter.entities.create({ id: 'stored', metadata: { by: 'hand' } });
  await limiter.entities.create({ id: 'user-1', parentId: 'stored', cascade: true });
  await limiter.entities.create({ id: 'below', parentId: 'user-1' });
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 1)], onUnavailable: 'local' });
  await limiter.config.setEntityDefault('a', { limits: [Limit.perMinute('rpm', 1)] });
  return { backend, limiter };
}

type Outcome = 'applied' | 'refused by the file' | 'refused by the plan';

/** Reads and applies the bytes. A refusal has one line and the right class, and changes nothing. */
async function outcomeOf({ backend, limiter }: Store, bytes: Buffer): Promise<Outcome> {
  const before = await logicalState(backend);
  let file: ReturnType<typeof parseManifestFile>;
  try {
    file = parseManifestFile(bytes, 'limits.yaml');
  } catch (error) {
    checkRefusal(error);
    return 'refused by the file';
  }
  try {
    await limiter.manifest.apply(file.data);
  } catch (error) {
    // Not ApplyStopped: the plan must find the problem before anything is written.
    expect(error).toMatchObject({ name: 'ValidationError' });
    checkRefusal(file.explain(error));
    expect(await logicalState(backend)).toEqual(before);
    return 'refused by the plan';
  }
  expect(await limiter.manifest.plan(file.data)).toMatchObject({ changes: [], drift: [] });
  const printed = parseManifestFile(Buffer.from(printManifest(file.data)), 'printed.yaml');
  expect(await limiter.manifest.plan(printed.data)).toMatchObject({ changes: [], drift: [] });
  return 'applied';
}

function checkRefusal(error: unknown): void {
  expect(error).toBeInstanceOf(ManifestFileError);
  expect(isHeadgateError(error, 'input.invalid')).toBe(true);
  const { message } = error as ManifestFileError;
  expect(message).toMatch(/^limits\.yaml(?::\d+:\d+)?: ./);
}

describe('the stored corpus', () => {
  test.each(GOOD)('the file %s is applied', async (_, bytes) => {
    expect(await outcomeOf(await openStore(), bytes)).toBe('applied');
  });

  test.each(BAD)('the file %s is refused, and changes nothing', async (_, bytes) => {
    expect(await outcomeOf(await openStore(), bytes)).not.toBe('applied');
  });
});

test(
  'a mutated limits file is applied completely, or refused in one line without a change',
  { timeout: 600_000 },
  async () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const random = new Random(seed);
    // Mostly good files, because the first mistake of a bad file hides the second.
    const seeds = [...GOOD, ...GOOD, ...GOOD, ...BAD].map(([, bytes]) => bytes).filter((bytes) => bytes.length < 3_000);
    const counts = new Map<Outcome, number>();
    let slowestMs = 0;
    let store = await openStore();
    for (let count = 0; count < CASES; count++) {
      if (count % CASES_PER_STORE === 0) store = await openStore();
      const bytes = mutate(random, seeds);
      const started = process.cpuUsage();
      let outcome: Outcome;
      try {
        outcome = await outcomeOf(store, bytes);
        const { user, system } = process.cpuUsage(started);
        slowestMs = Math.max(slowestMs, (user + system) / 1_000);
        expect(slowestMs).toBeLessThan(MAX_MS);
      } catch (error) {
        throw new Error(`seed ${seed}, case ${count}: put these bytes into tests/corpus: ${bytes.toString('base64')}`, {
          cause: error,
        });
      }
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
    // Files that all fail to parse would not test the plan. An eighth of the cases may have none of a rare outcome.
    for (const outcome of ['applied', 'refused by the file', 'refused by the plan'] as const) {
      if (runsAll) expect(counts.get(outcome) ?? 0, outcome).toBeGreaterThan(CASES / 400);
    }
    console.log(
      `fuzz of limits files, seed ${seed}: ${[...counts].map((entry) => entry.join(' ')).join(', ')}; slowest ${slowestMs.toFixed(0)} ms`,
    );
  },
);
