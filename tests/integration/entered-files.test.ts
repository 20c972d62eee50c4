import { Session } from 'node:inspector/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';

/** A reader of one acquire has to open as many files. */
const MOST_OF_DYNAMODB = 20;
const MOST_WITH_SLOTS = 21;

let engine: Engine;

beforeAll(async () => {
  engine = await startEngine();
  const { endpoint, region } = engine;
  await createTable({ tableName: 'entered-files', endpoint, region });
});

afterAll(async () => engine.stop());

/** The files below `src/` of which a function runs meanwhile. */
async function enteredFiles(session: Session, work: () => Promise<unknown>): Promise<readonly string[]> {
  // What ran before is counted up to here.
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const entered = result.filter(({ functions }) =>
    functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
  );
  return entered.flatMap(({ url }) => /\/src\/(?!testing\/)(.+\.ts)$/.exec(url)?.[1] ?? []).toSorted();
}

test.each([
  [
    'rates',
    [Limit.perMinute('rpm', 100_000), Limit.perMinute('tpm', 10_000_000)],
    { rpm: 1, tpm: 50 },
    MOST_OF_DYNAMODB,
  ],
  ['slots', [Limit.perMinute('rpm', 100_000), Limit.concurrent('slots', 50)], { rpm: 1, slots: 1 }, MOST_WITH_SLOTS],
] as const)(
  'a warm acquire of %s enters at most as many files of DynamoDB as decision 30 states',
  async (name, limits, consume, most) => {
    const { endpoint, region } = engine;
    const store = dynamodb({ table: 'entered-files', endpoint, region });
    await using limiter = await RateLimiter.open(store, { limits: [...limits] });
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    const ask = { entityId: name, resource: 'gpt-4', consume };
    for (let warm = 0; warm < 8; warm++) await limiter.acquire(ask);
    // What runs once in a while, such as a renewed check of the namespace, is in one of the repetitions only.
    const counts: (readonly string[])[] = [];
    for (let repetition = 0; repetition < 5; repetition++) {
      counts.push(await enteredFiles(session, async () => limiter.acquire(ask)));
    }
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
    const [least = []] = counts.toSorted((a, b) => a.length - b.length);
    const ofDynamoDB = least.filter((path) => path.startsWith('backends/dynamodb/'));
    expect(ofDynamoDB).toContain('backends/dynamodb/bucket/group/group-write.ts');
    expect(ofDynamoDB.length, ofDynamoDB.join('\n')).toBeLessThanOrEqual(most);
  },
);
