import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Call, LevelRef } from '../../../../src/backend.js';
import type { Rate } from '../../../../src/core/bucket/bucket.js';
import type { Limit } from '../../../../src/core/limit.js';
import type { BucketCache } from '../../../../src/backends/dynamodb/acquire/bucket-shards.js';
import { openBuckets } from '../../../support/dynamodb/shard-lines.js';
import { adjust, consume } from '../../../../src/backends/dynamodb/acquire/consume.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import type { Part } from '../../../oracle/model.js';
import { baseThatStays, type Rules } from '../../../oracle/rules.js';
import { type Findings, runOracle } from '../../../oracle/run-oracle.js';
import { randomScenario, type Scenario, type ScenarioOptions } from '../../../oracle/scenario.js';
import type { ConditionalStore, Image } from '../../../oracle/store.js';
import { inWholeTokens, itemStore, limitOf } from './oracle-world.js';
import { runs } from '../../../support/runs.js';
import { type ShardEngine, startShardEngine } from '../../../support/dynamodb/shard-engine.js';
import { imageOf, KEY } from '../../../support/dynamodb/shard-images.js';
import { TUNING } from '../../../support/dynamodb/shard-lines.js';

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

  /** Processes that share only the table. Each has its own lines and caches. */
  const lineRules =
    (ns: string): Rules =>
    (_, initial) => {
      const processes = new Map<
        number,
        { readonly buckets: BucketCache; limits: readonly Limit[]; sequence: number }
      >();
      let sequence = 1;
      let limits = initial.limits.map(({ rate }, limit) => limitOf(limit, rate));
      const processOf = (client: number) => {
        let process = processes.get(client);
        if (process === undefined) {
          process = { buckets: openBuckets(engine.table), limits, sequence };
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
          // A client does not ask for more than the capacity of its cached config. It reads the config again first.
          const isTooLarge = ({ limit, milli }: Part): boolean => milli > (process.limits[limit]?.capacityMilli ?? 0);
          if (asks.flat().some(isTooLarge)) Object.assign(process, { limits, sequence });
          const call = callAt(nowMs);
          const ask = async (parts: readonly Part[]) => {
            const level = { ...refOf(process), asks: amountsOf(parts, 1), holder: null };
            return consume(buckets, call, { leaseId: null, levels: [level] });
          };
          const change = async (part: Part, sign: number) => {
            const level = {
              ...refOf(process),
              kind: 'deltas',
              deltas: amountsOf([part], sign),
              holder: 'none',
            } as const;
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
            granted.some((outcome) => 'levels' in outcome && outcome.levels.some(({ configIsOlder }) => configIsOlder))
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
          await consume(process.buckets, callAt(nowMs), { leaseId: null, levels: [level] });
          return (await engine.read(ns, KEY))!.baseMs;
        },
      };
    };

  const ANY_RATE: Rate = { kind: 'rate', capacityMilli: 1_000, refillMilli: 1_000, refillPeriodMs: 1 };

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

  test(
    'several processes with stale images and old configs agree with the oracle',
    async () => {
      // Leases give slots back, and the oracle has no leases.
      const scenarios = scenariosOf(runs(28), { changes: true, huge: false, steps: 50 }).filter(
        ({ rates }) => rates.length === 2,
      );
      const play = async (scenario: Scenario) => {
        const ns = freshNs();
        return runOracle(scenario, lineRules(ns), async (initial) => linesStore(ns, initial));
      };
      const total = await judge(scenarios, play);
      expect(total).toMatchObject({ wrong: [] });
      expect(total.steps).toBeGreaterThan(runs(500));
    },
    TIMEOUT_MS,
  );
});
