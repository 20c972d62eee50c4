import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Engine, findEngine, startEngine } from '../../src/testing/dynamodb/index.js';
import { type Fleet, PROCESSES, runFleet } from '../support/llm/fleet.js';
import { forkable } from '../support/processes/fork-bundled.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const LARGE = { model: 'large-calls', durationMs: 60_000, words: 500, maxOutput: 1_000 } as const;
const SMALL = { model: 'small-calls', durationMs: 30_000, words: 20, maxOutput: 50 } as const;
const TABLE = 'llm-fleet';

describe.skipIf(found.status === 'unavailable')(
  `eight processes with fifty clients each on one upstream key${why}`,
  () => {
    let engine: Engine;
    let start: (...args: readonly string[]) => ChildProcess;

    beforeAll(async () => {
      engine = await startEngine('dynoxide');
      process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
      process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
      await createTable({ tableName: TABLE, endpoint: engine.endpoint, region: engine.region });
      await using limiter = await open();
      await limiter.config.setSystem({ limits: [Limit.perMinute('tpm', 100_000_000)] });
      await limiter.entities.create({ id: 'upstream' });
      for (let at = 0; at < PROCESSES; at++) {
        await limiter.entities.create({ id: `process-${at}`, parentId: 'upstream', cascade: true });
      }
      start = await forkable(new URL('./llm-fleet-child.ts', import.meta.url));
    });
    afterAll(async () => engine?.stop());

    const storeOf = () => ({ table: TABLE, endpoint: engine.endpoint, region: engine.region });
    const open = () => RateLimiter.open(createDynamoDBBackend(storeOf(), {}), {});

    /** A quota of which a minute's tokens may be used at once, and the limits for it. */
    const quotaFor = async (model: string, tokensPerSecond: number) => {
      const burst = 60 * tokensPerSecond;
      // 97 % of the provider's rate, and its burst less 3 s of the rate: calls may take that long to arrive.
      const refill = { refillAmount: Math.floor(0.97 * tokensPerSecond), refillPeriodMs: 1_000 };
      const tpm = Limit.custom('tpm', { capacity: burst - 3 * tokensPerSecond, ...refill });
      await using limiter = await open();
      await limiter.config.setEntity('upstream', model, { limits: [tpm] });
      return { tokensPerSecond, burst };
    };
    const run = async (title: string, fleet: Fleet) => {
      const { reasons, errors, ...figures } = await runFleet(start, fleet);
      console.log(`${title}: ${JSON.stringify(figures)} ${reasons.join('\n')}`);
      return { figures, reasons, errors };
    };

    test('with Headgate the provider refuses no call, and at least 90 % of its quota is used; without Headgate it refuses more calls than it answers', async () => {
      const quota = await quotaFor(LARGE.model, 10_000);
      const limited = await run('with Headgate', { ...LARGE, store: storeOf(), quota });
      const unlimited = await run('without Headgate', { ...LARGE, store: null, quota });
      expect([limited.errors, limited.reasons]).toEqual([[], []]);
      expect(limited.figures).toMatchObject({ refused: 0, failed: 0 });
      expect(limited.figures.share).toBeGreaterThanOrEqual(0.9);
      expect(unlimited.figures.refused).toBeGreaterThan(unlimited.figures.answered);
      expect(unlimited.figures.failed).toBeGreaterThan(0);
    });

    test('with small calls, and a quota that the machine can use up, the provider refuses no call, and at least 90 % of its quota is used; without Headgate it refuses some', async () => {
      // Otherwise the processors, and not the quota, decide how many small calls there are. With the burst, the quota
      // is three times its rate: 40 % of what the machine can do.
      const trial = { ...SMALL, model: 'unlimited-calls', durationMs: 15_000 } as const;
      const able = await run('without a quota', { ...trial, store: storeOf(), quota: null });
      const tokensPerSecond = Math.floor((able.figures.tokens / 15) * (0.4 / 3));
      const quota = await quotaFor(SMALL.model, tokensPerSecond);
      const limited = await run('with Headgate', { ...SMALL, store: storeOf(), quota });
      const unlimited = await run('without Headgate', { ...SMALL, store: null, quota });
      expect([limited.errors, limited.reasons]).toEqual([[], []]);
      expect(limited.figures).toMatchObject({ refused: 0, failed: 0 });
      expect(limited.figures.share).toBeGreaterThanOrEqual(0.9);
      expect(unlimited.figures.refused).toBeGreaterThan(0);
    });
  },
);
