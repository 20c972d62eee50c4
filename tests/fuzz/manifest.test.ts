import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { memory } from '../../src/backends/embedded/memory.js';
import type { Backend } from '../../src/backend.js';
import { ManifestFileError, parseManifestFile } from '../../src/cli/manifest-file.js';
import { printManifest } from '../../src/cli/print-manifest.js';
import { isHeadgateError } from '../../src/core/errors.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { logicalState } from '../support/models/logical-state.js';
import { mutate } from '../support/migration/mutate.js';
import { runs } from '../support/runs.js';

const CASES = Number(process.env['FUZZ_CASES'] ?? runs(3_000));
/** Stores are made anew now and then: until then, what was applied before is part of the next case. */
const CASES_PER_STORE = 50;
/** Of the processor, not of the clock: the machine may be busy with other things. */
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

/** With something of everything that a file can meet. */
async function openStore(): Promise<Store> {
  const backend = memory();
  const limiter = await RateLimiter.open(backend);
  await limiter.entities.create({ id: 'nobody', metadata: { by: 'hand' } });
  await limiter.entities.create({ id: 'user-1', parentId: 'nobody', cascade: true });
  await limiter.entities.create({ id: 'below', parentId: 'user-1' });
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 1)], onUnavailable: 'local' });
  await limiter.config.setEntityDefault('a', { limits: [Limit.perMinute('rpm', 1)] });
  return { backend, limiter };
}

type Outcome = 'applied' | 'refused by the file' | 'refused by the plan';

/** Reads and applies the bytes. What is refused is refused in one line, by the right class, and changes nothing. */
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
    // Not ApplyStopped: the plan must have found it.
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
    // Mostly good ones: a second mistake in a bad file is seldom reached.
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
    // A fuzz whose files are all refused at the door would try nothing.
    for (const outcome of ['applied', 'refused by the file', 'refused by the plan'] as const) {
      expect(counts.get(outcome) ?? 0, outcome).toBeGreaterThan(CASES / 200);
    }
    console.log(
      `fuzz of limits files, seed ${seed}: ${[...counts].map((entry) => entry.join(' ')).join(', ')}; slowest ${slowestMs.toFixed(0)} ms`,
    );
  },
);
