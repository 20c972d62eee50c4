import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../support/runs.js';
import { credit, type Rate } from '../../src/core/bucket/bucket.js';
import { publishedRules } from './published-rules.js';
import { baseThatStays, type Rules } from './rules.js';
import { type Findings, runOracle } from './run-oracle.js';
import { randomScenario, type Scenario, type ScenarioOptions, type Share, type ScenarioStep } from './scenario.js';
import { fullImage, memoryStore } from './store.js';

const RUNS = runs(700);
const STEPS = 300;

/** Adds up the results of many scenarios. Each failure names its seed: `randomScenario(seed, options)` reproduces it. */
async function judge(rules: Rules, options: Omit<ScenarioOptions, 'steps'>) {
  const total = { steps: 0, writes: 0, overAdmitted: 0, underAdmitted: 0, mismatches: [] as string[] };
  for (let seed = 1; seed <= RUNS; seed++) {
    const found: Findings = await runOracle(randomScenario(seed, { ...options, steps: STEPS }), rules);
    total.steps += found.steps;
    total.writes += found.writes;
    total.overAdmitted += found.overAdmitted;
    total.underAdmitted += found.underAdmitted;
    if (found.firstMismatch !== null) total.mismatches.push(`seed ${seed}: ${found.firstMismatch}`);
  }
  return total;
}

const FLAWLESS = { steps: RUNS * STEPS, overAdmitted: 0, underAdmitted: 0, mismatches: [] };

test('clients with stale images grant, deny and leave exactly what an account does that settles at every operation', async () => {
  expect(await judge(baseThatStays, { changes: false, huge: false })).toMatchObject(FLAWLESS);
});

test('clients with stale images agree with the account while limits change', async () => {
  expect(await judge(baseThatStays, { changes: true, huge: false })).toMatchObject(FLAWLESS);
});

test('clients with stale images agree with the account for numbers above 2^53', async () => {
  expect(await judge(baseThatStays, { changes: true, huge: true })).toMatchObject(FLAWLESS);
});

test('clients with stale images agree with the account where asks have priorities', async () => {
  expect(await judge(baseThatStays, { changes: true, huge: false, priorities: true })).toMatchObject(FLAWLESS);
});

test('the oracle finds that the published rules over-admit', async () => {
  const found = await judge(publishedRules, { changes: false, huge: false });
  expect(found.overAdmitted).toBeGreaterThan(0);
  expect(found.underAdmitted).toBeGreaterThan(0);
  expect(found.mismatches.length).toBeGreaterThan(0);
});

test('the oracle finds that the published rules grant twice the capacity in one instant', async () => {
  const rate: Rate = { kind: 'rate', capacityMilli: 100, refillMilli: 100, refillPeriodMs: 1_000 };
  const does: ScenarioStep['does'] = {
    kind: 'group',
    asks: [[{ limit: 0, permille: 1_000 }]],
    debits: [],
    refunds: [],
  };
  // The bucket was always full, but the first take does not move the base: the second refills from there.
  const steps = [5_000, 0].map((afterMs) => ({ client: 1, afterMs, does }));
  const scenario: Scenario = { rates: [rate], createdAtMs: 0, steps };
  expect(await runOracle(scenario, publishedRules)).toMatchObject({ overAdmitted: 1 });
  expect(await runOracle(scenario, baseThatStays)).toMatchObject({ overAdmitted: 0, firstMismatch: null });
});

const anyRate = fc.record({
  kind: fc.constant('rate' as const),
  capacityMilli: fc.integer({ min: 0, max: 20 }),
  refillMilli: fc.integer({ min: 0, max: 5 }),
  refillPeriodMs: fc.integer({ min: 1, max: 7 }),
});
const slots = fc.record({
  kind: fc.constant('concurrent' as const),
  capacityMilli: fc.integer({ min: 0, max: 4 }),
  refillMilli: fc.constant(0),
  refillPeriodMs: fc.constant(0),
});
const permille = fc.integer({ min: 0, max: 22 }).map((n) => n * 50);
const share: fc.Arbitrary<Share> = fc.record({ limit: fc.nat({ max: 2 }), permille });
const ask = fc.uniqueArray(share, { minLength: 1, maxLength: 3, selector: ({ limit }) => limit });
const step: fc.Arbitrary<ScenarioStep> = fc.record({
  client: fc.nat({ max: 2 }),
  afterMs: fc.oneof(fc.constant(0), fc.nat({ max: 12 })),
  does: fc.oneof(
    fc.record({
      kind: fc.constant('group' as const),
      asks: fc.array(ask, { maxLength: 3 }),
      debits: fc.array(share, { maxLength: 2 }),
      refunds: fc.array(share, { maxLength: 2 }),
    }),
    fc.record({ kind: fc.constant('change' as const), limit: fc.nat({ max: 2 }), rate: anyRate }),
  ),
});
const scenario: fc.Arbitrary<Scenario> = fc.record({
  rates: fc.tuple(anyRate, anyRate, slots),
  createdAtMs: fc.nat({ max: 50 }),
  steps: fc.array(step, { maxLength: 25 }),
});

test('any short history agrees with the account after every operation', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (played) => {
      const found = await runOracle(played, baseThatStays);
      expect(found).toMatchObject({ overAdmitted: 0, underAdmitted: 0, firstMismatch: null });
    }),
    { numRuns: runs(3_000) },
  );
});

test('clients whose clocks differ are granted no more than the earliest and the latest clock allow', async () => {
  const skews = fc.array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: 2, maxLength: 4 });
  const asks = fc.array(
    fc.record({ client: fc.nat({ max: 3 }), afterMs: fc.nat({ max: 900 }), milli: fc.nat({ max: 5_000 }) }),
    { maxLength: 60 },
  );
  await fc.assert(
    fc.asyncProperty(skews, asks, fc.integer({ min: 1, max: 9_000 }), async (offsets, steps, refillMilli) => {
      const rate: Rate = { kind: 'rate', capacityMilli: 5_000, refillMilli, refillPeriodMs: 1_000 };
      const initial = fullImage([rate], 1_000_000);
      const clients = baseThatStays(memoryStore(initial), initial);
      let nowMs = initial.baseMs;
      let granted = 0;
      for (const { client, afterMs, milli } of steps) {
        nowMs += afterMs;
        const group = { asks: [[{ limit: 0, milli, reserveMilli: 0 }]], debits: [], refunds: [] };
        const [did] = await clients.move(client, group, nowMs + offsets[client % offsets.length]!);
        if (did === true) granted += milli;
      }
      const allowed = rate.capacityMilli + Number(credit(rate, initial.baseMs - 1_000, nowMs + 1_000));
      expect(granted).toBeLessThanOrEqual(allowed);
    }),
    { numRuns: runs(1_000) },
  );
});
