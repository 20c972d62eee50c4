import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Engine, findEngine, startEngine } from '../../src/testing/dynamodb/index.js';
import { type ProviderRequest, startProvider } from '../../src/testing/provider/index.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';
import type { FleetNews, FleetOrder } from './llm-fleet-child.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const PROCESSES = 8;
const CLIENTS = 50;
const MODEL = 'fleet-model';
const MAX_OUTPUT = 1_000;
const DURATION_MS = 60_000;
/** The quota of the provider: a minute's tokens may be used at once. */
const RATE = 10_000;
const BURST = 60 * RATE;
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
      const { endpoint, region } = engine;
      await createTable({ tableName: TABLE, endpoint, region });
      const backend = createDynamoDBBackend({ table: TABLE, endpoint, region }, {});
      await using limiter = await RateLimiter.open(backend, {});
      // 97 % of the provider's rate, and its burst less 3 s of the rate: calls may take that long to arrive.
      const tpm = Limit.custom('tpm', { capacity: BURST - 3 * RATE, refillAmount: 0.97 * RATE, refillPeriodMs: 1_000 });
      await limiter.config.setSystem({ limits: [Limit.perMinute('tpm', 100_000_000)] });
      await limiter.entities.create({ id: 'upstream' });
      await limiter.config.setEntity('upstream', MODEL, { limits: [tpm] });
      for (let at = 0; at < PROCESSES; at++) {
        await limiter.entities.create({ id: `process-${at}`, parentId: 'upstream', cascade: true });
      }
      start = await forkable(new URL('./llm-fleet-child.ts', import.meta.url));
    });
    afterAll(async () => engine?.stop());

    const run = async (isLimited: boolean) => {
      // Between half and all of what the request allows.
      let made = 0;
      const plan = ({ maxOutputTokens }: ProviderRequest) => ({
        outputTokens: Math.ceil((maxOutputTokens ?? 0) * (0.5 + ((made++ * 7) % 50) / 100)),
        startDelayMs: 50,
      });
      await using provider = await startProvider({ quota: { tokensPerSecond: RATE, burst: BURST }, plan });
      const { endpoint, region } = engine;
      const store = isLimited ? { endpoint, region, table: TABLE } : null;
      const children = Array.from({ length: PROCESSES }, () => start());
      const exits = children.map(ended);
      const heard = (child: ChildProcess) => new Promise<unknown>((resolve) => child.once('message', resolve));
      const ready = children.map((child, process) => {
        const order: FleetOrder = {
          process,
          url: provider.url,
          model: MODEL,
          durationMs: DURATION_MS,
          clients: CLIENTS,
          maxOutput: MAX_OUTPUT,
          store,
        };
        const answer = heard(child);
        child.send(order);
        return answer;
      });
      await Promise.all(ready);
      const news = children.map((child) => {
        const answer = heard(child);
        child.send('go');
        return answer;
      });
      const answers = (await Promise.all(news)) as FleetNews[];
      expect(await Promise.all(exits)).toEqual(children.map(() => 0));
      const refused = provider.calls.filter(({ end }) => end === 'refused').length;
      const served = provider.calls.reduce(
        (sum, call) => sum + (call.status === 200 ? call.inputTokens + call.outputTokens : 0),
        0,
      );
      const sum = (of: (answer: FleetNews) => number): number =>
        answers.reduce((total, answer) => total + of(answer), 0);
      const figures = {
        answered: sum(({ calls }) => calls),
        'refused by the provider (429)': refused,
        'failed for the caller': sum(({ failed }) => failed),
        'tokens served': served,
        'share of the quota': Number((served / (BURST + (RATE * DURATION_MS) / 1000)).toFixed(3)),
      };
      console.log(`${isLimited ? 'with' : 'without'} Headgate: ${JSON.stringify(figures)}`);
      const reasons = answers.flatMap((answer) => answer.reasons);
      if (isLimited) console.log([...new Set(reasons)].join('\n'));
      return { figures, reasons, errors: answers.flatMap(({ errors }) => errors) };
    };

    test('with Headgate the provider refuses no call, and at least 90 % of its quota is used; without Headgate it refuses many', async () => {
      const limited = await run(true);
      const unlimited = await run(false);
      expect(limited.errors).toEqual([]);
      expect(limited.figures['refused by the provider (429)']).toBe(0);
      expect(limited.figures['failed for the caller']).toBe(0);
      expect(limited.figures['share of the quota']).toBeGreaterThanOrEqual(0.9);
      expect(unlimited.figures['refused by the provider (429)']).toBeGreaterThan(0);
    });
  },
);
