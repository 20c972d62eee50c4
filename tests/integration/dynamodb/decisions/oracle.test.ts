import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Call, LevelRef } from '../../../../src/backend.js';
import type { Rate } from '../../../../src/core/bucket/bucket.js';
import type { Limit } from '../../../../src/core/limit.js';
import { BucketCache } from '../../../../src/backends/dynamodb/acquire/bucket-cache.js';
import { adjust, consume } from '../../../../src/backends/dynamodb/acquire/consume.js';
import { PRESSURE } from '../../../../src/backends/dynamodb/bucket/pressure.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import type { Part } from '../../../../src/testing/oracle/model.js';
import { baseThatStays, type Rules } from '../../../../src/testing/oracle/rules.js';
import { type Findings, runOracle } from '../../../../src/testing/oracle/run-oracle.js';
import { randomScenario, type Scenario, type ScenarioOptions } from '../../../../src/testing/oracle/scenario.js';
import type { ConditionalStore, Image } from '../../../../src/testing/oracle/store.js';
import { inWholeTokens, itemStore, limitOf } from './oracle-world.js';
import { runs } from '../../../support/runs.js';
import { type ShardEngine, startShardEngine } from '../../../support/dynamodb/shard-engine.js';
import { imageOf, KEY } from '../../../support/dynamodb/shard-images.js';
import { TUNING } from '../../../support/dynamodb/shard-lines.js';

const installed = findEngine();
const reason = installed.status === 'available' ? '' : ` (skipped: ${installed.reason})`;
/** A busy machine takes its time. */
const PATIENCE_MS = 120_000;
/** Of different buckets, so that they do not wait for each other. */
const AT_ONCE = 8;
const SCENARIOS = runs(16);

describe.skipIf(installed.status === 'unavailable')(
  `clients of DynamoDB, against an account that settles at every operation${reason}`,
  () => {
    let engine: ShardEngine;
    let namespaces = 0;

    beforeAll(async () => void (engine = await startShardEngine()));
    afterAll(async () => engine?.[Symbol.asyncDispose]());

    const freshNs = (): string => `oracle${(namespaces += 1)}`;

    /** Each failure names its seed: `randomScenario(seed, options)` plays it again. */
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
      ['grant what it grants, and leave what it leaves', { changes: false, huge: false }],
      ['do so while limits get new numbers', { changes: true, huge: false }],
      ['do so with numbers that pass 2^53', { changes: true, huge: true }],
    ])(
      'with stale images and the requests of the real builders %s',
      async (_, options) => {
        const play = async (scenario: Scenario) =>
          runOracle(scenario, baseThatStays, async (born) => itemStore(engine, freshNs(), born));
        const total = await judge(scenariosOf(SCENARIOS, { ...options, steps: 105 }), play);
        expect(total).toMatchObject({ steps: SCENARIOS * 105, wrong: [] });
        expect(total.writes).toBeGreaterThan(SCENARIOS * 80);
      },
      PATIENCE_MS,
    );

    /** Processes that know nothing of each other but the table, each with its own lines and what they remember. */
    const realLines =
      (ns: string): Rules =>
      (_, born) => {
        const processes = new Map<
          number,
          { readonly buckets: BucketCache; limits: readonly Limit[]; sequence: number }
        >();
        let sequence = 1;
        let limits = born.limits.map(({ rate }, limit) => limitOf(limit, rate));
        const processOf = (client: number) => {
          let process = processes.get(client);
          if (process === undefined) {
            process = { buckets: new BucketCache(engine.table, PRESSURE), limits, sequence };
            processes.set(client, process);
          }
          return process;
        };
        const refOf = ({
          limits: known,
          sequence: version,
        }: {
          limits: readonly Limit[];
          sequence: number;
        }): LevelRef => ({
          ...KEY,
          limits: known,
          version: { sequence: version, openedAtMs: 0 },
        });
        const callAt = (nowMs: number): Call => ({ namespaceId: ns, nowMs, timeoutMs: 20_000, tuning: TUNING });
        const amountsOf = (parts: readonly Part[], sign: number) =>
          parts.map(({ limit, milli }) => ({ name: limitOf(limit, ANY_RATE).name, milli: sign * milli }));

        return {
          async move(client, { asks, debits, refunds }, nowMs) {
            const process = processOf(client);
            const { buckets } = process;
            // More than an old config allows at all is not even asked for: it would have to be read again first.
            const isTooLarge = ({ limit, milli }: Part): boolean => milli > (process.limits[limit]?.capacityMilli ?? 0);
            if (asks.flat().some(isTooLarge)) Object.assign(process, { limits, sequence });
            const call = callAt(nowMs);
            const ask = async (parts: readonly Part[]) => {
              const level = { ...refOf(process), asks: amountsOf(parts, 1), holder: null };
              return consume(engine.table, buckets, call, { leaseId: null, levels: [level] });
            };
            const change = async (part: Part, sign: number) => {
              const level = {
                ...refOf(process),
                deltas: amountsOf([part], sign),
                totals: null,
                holder: 'none' as const,
              };
              const [result] = await adjust(buckets, call, { leaseId: '', levels: [level] });
              if (result?.kind !== 'done') throw new Error('A correction failed');
            };
            const [granted] = await Promise.all([
              Promise.all(asks.map(ask)),
              Promise.all(debits.map(async (part) => change(part, 1))),
              Promise.all(refunds.map(async (part) => change(part, -1))),
            ]);
            // A client whose config is old reads it again.
            if (
              granted.some(
                (outcome) => 'levels' in outcome && outcome.levels.some(({ configIsOlder }) => configIsOlder),
              )
            ) {
              Object.assign(process, { limits, sequence });
            }
            return granted.map(({ kind }) => kind === 'granted');
          },
          async change(client, limit, rate, nowMs) {
            const process = processOf(client);
            sequence += 1;
            limits = limits.map((known, place) => (place === limit ? limitOf(limit, rate) : known));
            Object.assign(process, { limits, sequence });
            const level = { ...refOf(process), asks: [], holder: null };
            await consume(engine.table, process.buckets, callAt(nowMs), { leaseId: null, levels: [level] });
            return (await engine.read(ns, KEY))!.baseMs;
          },
        };
      };

    const ANY_RATE: Rate = { kind: 'rate', capacityMilli: 1_000, refillMilli: 1_000, refillPeriodMs: 1 };

    /** Reads what the lines have written. */
    async function linesStore(ns: string, born: Image): Promise<ConditionalStore> {
      const limits = born.limits.map(({ rate }, limit) => limitOf(limit, rate));
      await engine.put(ns, imageOf(limits, { baseMs: born.baseMs }));
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

    test(
      'through the lines of several processes, with old images and old configs, do so too',
      async () => {
        // Slots are given back by leases, which the oracle has none of.
        const scenarios = scenariosOf(runs(28), { changes: true, huge: false, steps: 50 }).filter(
          ({ rates }) => rates.length === 2,
        );
        const play = async (scenario: Scenario) => {
          const ns = freshNs();
          return runOracle(scenario, realLines(ns), async (born) => linesStore(ns, born));
        };
        const total = await judge(scenarios, play);
        expect(total).toMatchObject({ wrong: [] });
        expect(total.steps).toBeGreaterThan(runs(500));
      },
      PATIENCE_MS,
    );
  },
);
