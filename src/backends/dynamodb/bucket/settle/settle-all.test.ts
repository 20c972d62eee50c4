import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SlotModel } from '../../../../../tests/support/dynamodb/workloads/slot-model.js';

type Write = (model: SlotModel) => void;

const shard = fc.nat(7);
const rules = fc.nat(5);
const slots = fc.integer({ min: 1, max: 6 });
const capacity = fc.constantFrom(null, 2, 7, 16, 64);
const write = (...writes: fc.Arbitrary<Write>[]): fc.Arbitrary<Write> => fc.oneof(...writes);

const config: fc.Arbitrary<Write> = capacity.map((to) => (model) => model.configure(to));
const settles: fc.Arbitrary<Write> = fc.tuple(shard, rules).map(
  ([at, by]) =>
    (model) =>
      model.settle(at, by),
);
const takes: fc.Arbitrary<Write> = fc.tuple(shard, slots).map(
  ([at, count]) =>
    (model) =>
      model.take(at, count),
);
const uncounted: fc.Arbitrary<Write> = fc.tuple(shard, slots).map(
  ([at, count]) =>
    (model) =>
      model.takeUncounted(at, count),
);
const others: fc.Arbitrary<Write> = write(
  shard.map((at) => (model) => model.release(at)),
  shard.map((at) => (model) => model.split(at)),
  shard.map((at) => (model) => model.merge(at)),
  fc.constant((model: SlotModel) => model.look()),
  rules.map((by) => (model) => model.settleAll(by)),
);
const histories = (...more: fc.Arbitrary<Write>[]): fc.Arbitrary<Write[]> =>
  fc.array(write(config, settles, takes, others, others, ...more), { minLength: 1, maxLength: 60 });

const RUNS = { numRuns: 3_000 };

describe('slots of a bucket of several shards', () => {
  test('free and held slots never exceed the largest capacity of a shard, or their sum before the write', () => {
    fc.assert(
      fc.property(histories(uncounted), (history) => {
        const model = new SlotModel(64);
        for (const one of history) {
          const { free, held, uncounted: before, capacities } = model;
          one(model);
          const most = Math.max(free + held + model.uncounted - before, ...capacities, ...model.capacities);
          expect(model.free + model.held).toBeLessThanOrEqual(most);
        }
      }),
      RUNS,
    );
  });

  test('free and held slots are at most the capacity once every shard has it, besides what was held while it was cut', () => {
    fc.assert(
      fc.property(histories(uncounted), (history) => {
        const model = new SlotModel(64);
        // While shards are settled one by one, one of them may hold more than its part, and another have its part free.
        let heldMeanwhile = 0;
        for (const one of history) {
          one(model);
          const [most] = model.capacities;
          if (most === undefined || !model.isUniform) heldMeanwhile = Math.max(heldMeanwhile, model.held);
          else expect(model.free + model.held).toBeLessThanOrEqual(most + heldMeanwhile);
          if (model.isUniform && model.free + model.held <= (most ?? 0)) heldMeanwhile = 0;
        }
      }),
      RUNS,
    );
  });

  test('free and held slots add up to the capacity after the reconciler has run, whatever happened before', () => {
    const resets: fc.Arbitrary<Write> = fc.constant((model: SlotModel) => model.reset());
    fc.assert(
      fc.property(histories(uncounted, resets), (history) => {
        const model = new SlotModel(64);
        for (const one of history) one(model);
        model.configure(33);
        model.reconcile();
        expect(model.balance + model.held).toBe(33);
        expect(model.free).toBe(Math.max(0, 33 - model.held));
      }),
      RUNS,
    );
  });

  test('two shards with 62 and 2 free slots have 2 or 62 after one of them lost the limit, and 64 after the reconciler', () => {
    for (const [lost, left] of [
      [0, 2],
      [1, 62],
    ] as const) {
      const model = new SlotModel(64);
      for (let lease = 0; lease < 10; lease++) model.take(0, 6);
      model.split(0);
      for (let lease = 0; lease < 10; lease++) model.release(0);
      model.configure(null);
      model.settle(lost, 1);
      model.configure(64);
      model.settle(lost, 2);
      model.settle(1 - lost, 2);
      expect(model.free).toBe(left);
      model.reconcile();
      expect(model.free).toBe(64);
    }
  });
});
