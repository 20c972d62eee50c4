import { expect, test } from 'vitest';
import { lineRules } from '../support/dynamodb/workloads/line-rules.js';
import { inWholeTokens, limitOf } from '../support/dynamodb/workloads/oracle-limits.js';
import { recordTable } from '../support/dynamodb/shard/record-table.js';
import { imageOf } from '../support/dynamodb/shard/shard-images.js';
import { runs } from '../support/runs.js';
import { runOracle } from './run-oracle.js';
import { randomScenario, type ScenarioOptions } from './scenario.js';
import { fullImage } from './store.js';

const RUNS = runs(160);
const STEPS = 100;

test.each([
  ['pauses', { pauses: true }],
  ['shadows', { shadows: true }],
  ['priorities and shadows', { priorities: true, shadows: true }],
  ['priorities, pauses and shadows', { priorities: true, pauses: true, shadows: true }],
] satisfies readonly (readonly [string, Partial<ScenarioOptions>])[])(
  'the real acquires of processes with stale images and old configs agree with the account, with %s',
  async (_, features) => {
    const wrong: string[] = [];
    let asks = 0;
    let ended = 0;
    for (let seed = 1; seed <= RUNS; seed++) {
      const drawn = randomScenario(seed, { changes: true, huge: false, steps: STEPS, ...features });
      const scenario = { ...inWholeTokens(drawn), leases: true };
      const { limits, baseMs } = fullImage(scenario.rates, scenario.createdAtMs);
      const rules = limits.map(({ rate }, limit) => limitOf(limit, rate));
      const table = recordTable(imageOf(rules, { baseMs }));
      const found = await runOracle(scenario, lineRules(table), () => ({
        write: () => {
          throw new Error('The processes write by themselves');
        },
        async read() {
          const image = await table.read();
          const account = (name: string) => image.limits.find(({ limit }) => limit.name === name)!;
          return { baseMs: image.baseMs, limits: rules.map(({ name }) => account(name)) };
        },
      }));
      asks += found.steps;
      ended += found.endedLeases;
      const { overAdmitted, underAdmitted, firstMismatch } = found;
      if (overAdmitted + underAdmitted === 0 && firstMismatch === null) continue;
      wrong.push(`seed ${seed}: ${overAdmitted} over, ${underAdmitted} under, ${firstMismatch}`);
    }
    expect(wrong).toEqual([]);
    expect(asks).toBe(RUNS * STEPS);
    // Half of the scenarios have slots.
    expect(ended).toBeGreaterThan(RUNS);
  },
);
