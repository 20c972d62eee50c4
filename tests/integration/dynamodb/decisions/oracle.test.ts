import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBuckets } from '../../../support/dynamodb/shard/shard-lines.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import { baseThatStays } from '../../../oracle/rules.js';
import { type Findings, runOracle } from '../../../oracle/run-oracle.js';
import { randomScenario, type Scenario, type ScenarioOptions } from '../../../oracle/scenario.js';
import type { ConditionalStore, Image } from '../../../oracle/store.js';
import { itemStore } from './oracle-world.js';
import { lineRules } from '../../../support/dynamodb/workloads/line-rules.js';
import { inWholeTokens, limitOf } from '../../../support/dynamodb/workloads/oracle-limits.js';
import { runs } from '../../../support/runs.js';
import { type ShardEngine, startShardEngine } from '../../../support/dynamodb/shard/shard-engine.js';
import { imageOf, KEY } from '../../../support/dynamodb/shard/shard-images.js';

const installed = findEngine();
const reason = installed.status === 'available' ? '' : ` (skipped: ${installed.reason})`;
/** For a busy machine. */
const TIMEOUT_MS = 120_000;
/** Concurrent scenarios have different buckets, so that they do not wait for each other. */
const AT_ONCE = 8;
const SCENARIOS = runs(16);

describe.skipIf(installed.status === 'unavailable')(`clients of DynamoDB compared with the oracle${reason}`, () => {
  let engine: ShardEngine;
  let namespaces = 0;

  beforeAll(async () => void (engine = await startShardEngine()));
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const freshNs = (): string => `oracle${(namespaces += 1)}`;

  /** Each failure names its seed: `randomScenario(seed, options)` reproduces it. */
  async function judge(
    scenarios: readonly Scenario[],
    play: (scenario: Scenario) => Promise<Findings>,
  ): Promise<{ readonly steps: number; readonly writes: number; readonly wrong: readonly string[] }> {
    const total = { steps: 0, writes: 0, wrong: [] as string[] };
    for (let from = 0; from < scenarios.length; from += AT_ONCE) {
      const findings = await Promise.all(scenarios.slice(from, from + AT_ONCE).map(play));
      for (const [at, { steps, writes, overAdmitted, underAdmitted, firstMismatch }] of findings.entries()) {
        total.steps += steps;
        total.writes += writes;
        if (overAdmitted + underAdmitted === 0 && firstMismatch === null) continue;
        total.wrong.push(`scenario ${from + at}: ${overAdmitted} over, ${underAdmitted} under, ${firstMismatch}`);
      }
    }
    return total;
  }

  const scenariosOf = (count: number, options: ScenarioOptions): readonly Scenario[] =>
    Array.from({ length: count }, (_, seed) => inWholeTokens(randomScenario(seed + 1, options)));

  test.each([
    ['with fixed limits', { changes: false, huge: false }],
    ['while limits change', { changes: true, huge: false }],
    ['for numbers above 2^53', { changes: true, huge: true }],
  ])(
    'clients with stale images and the real request builders agree with the oracle %s',
    async (_, options) => {
      const play = async (scenario: Scenario) =>
        runOracle(scenario, baseThatStays, async (initial) => itemStore(engine, freshNs(), initial));
      const total = await judge(scenariosOf(SCENARIOS, { ...options, steps: 105 }), play);
      expect(total).toMatchObject({ steps: SCENARIOS * 105, wrong: [] });
      expect(total.writes).toBeGreaterThan(SCENARIOS * 80);
    },
    TIMEOUT_MS,
  );

  /** The store of the oracle, for reading only: the lines write to the table. */
  async function linesStore(ns: string, initial: Image): Promise<ConditionalStore> {
    const limits = initial.limits.map(({ rate }, limit) => limitOf(limit, rate));
    await engine.put(ns, imageOf(limits, { baseMs: initial.baseMs }));
    return {
      write: () => {
        throw new Error('The lines write by themselves');
      },
      async read() {
        const image = (await engine.read(ns, KEY))!;
        const account = (name: string) => image.limits.find(({ limit }) => limit.name === name)!;
        return {
          baseMs: image.baseMs,
          limits: limits.map(({ name }) => ({ rate: account(name).rate, tokensMilli: account(name).tokensMilli })),
        };
      },
    };
  }

  test.each([
    ['while limits change', { changes: true, huge: false }],
    [
      'with priorities, pauses and shadows',
      { changes: true, huge: false, priorities: true, pauses: true, shadows: true },
    ],
  ])(
    'several processes with stale images and old configs agree with the oracle %s',
    async (_, options) => {
      // Leases give slots back, and the oracle has no leases.
      const scenarios = scenariosOf(runs(28), { ...options, steps: 50 }).filter(({ rates }) => rates.length === 2);
      const play = async (scenario: Scenario) => {
        const ns = freshNs();
        const read = async () => (await engine.read(ns, KEY))!;
        const rules = lineRules({ ns, open: () => openBuckets(engine.table), read });
        return runOracle(scenario, rules, async (initial) => linesStore(ns, initial));
      };
      const total = await judge(scenarios, play);
      expect(total).toMatchObject({ wrong: [] });
      expect(total.steps).toBeGreaterThan(runs(500));
    },
    TIMEOUT_MS,
  );
});
