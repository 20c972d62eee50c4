import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ValidationError } from '../../src/core/errors.js';
import { Limit } from '../../src/core/limit.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { mutate } from '../support/migration/mutate.js';
import { runs } from '../support/runs.js';

const CASES = Number(process.env['FUZZ_CASES'] ?? runs(3_000)) * 10;

function readCorpus(name: string): readonly string[] {
  const text = readFileSync(new URL(`../corpus/limit/${name}.txt`, import.meta.url), 'utf8');
  return text.split('\n').slice(0, -1);
}

const GOOD = readCorpus('good');
const BAD = readCorpus('bad');

/** Whether the text is a limit. A limit must be the same after printing and parsing it. */
function isLimit(text: string): boolean {
  let limit: Limit;
  try {
    limit = Limit.parse(text);
  } catch (error) {
    expect(error).toBeInstanceOf(ValidationError);
    expect((error as Error).message.split('\n')).toHaveLength(1);
    return false;
  }
  expect(Limit.parse(String(limit))).toEqual(limit);
  expect(String(Limit.parse(String(limit)))).toBe(String(limit));
  return true;
}

describe('the stored corpus', () => {
  test.each(GOOD)('the text %j is a limit', (text) => {
    expect(isLimit(text)).toBe(true);
  });

  test.each(BAD)('the text %j is not a limit', (text) => {
    expect(isLimit(text)).toBe(false);
  });
});

test(
  'a mutated limit text is a limit that can be printed and parsed again, or is refused in one line',
  { timeout: 600_000 },
  () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const random = new Random(seed);
    const seeds = [...GOOD, ...BAD].map((text) => Buffer.from(text));
    let limits = 0;
    for (let count = 0; count < CASES; count++) {
      const text = mutate(random, seeds).toString('utf8');
      try {
        if (isLimit(text)) limits += 1;
      } catch (error) {
        throw new Error(`seed ${seed}, case ${count}: put this line into tests/corpus: ${JSON.stringify(text)}`, {
          cause: error,
        });
      }
    }
    expect(limits).toBeGreaterThan(CASES / 200);
    expect(limits).toBeLessThan(CASES);
    console.log(`fuzz of limits, seed ${seed}: ${limits} of ${CASES} texts are limits`);
  },
);
