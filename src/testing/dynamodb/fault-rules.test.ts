import { describe, expect, test } from 'vitest';
import { ValidationError } from '../../core/errors.js';
import { Random } from '../conformance/random.js';
import type { DynamoRequest } from './dynamo-request.js';
import { fault } from './fault.js';
import { type FaultRule, FaultRules } from './fault-rules.js';

const update: DynamoRequest = { operation: 'UpdateItem', body: { TableName: 'a' } };
const read: DynamoRequest = { operation: 'GetItem', body: { TableName: 'a' } };

const newRules = (seed = 1): FaultRules => new FaultRules(new Random(seed));
const kinds = (rules: FaultRules, request: DynamoRequest): string[] =>
  rules.strike(request).map((strike) => strike.fault.kind);

describe('a rule', () => {
  test('without conditions strikes every request', () => {
    const rules = newRules();
    const injected = rules.inject(fault.loseAnswer());
    expect([kinds(rules, update), kinds(rules, read)]).toEqual([['lose-answer'], ['lose-answer']]);
    expect(injected.fired).toBe(2);
  });

  test('strikes only the operations that it names, and the requests that its predicate takes', () => {
    const rules = newRules();
    const injected = rules.inject(fault.loseAnswer(), {
      operations: ['UpdateItem'],
      when: ({ body }) => body['TableName'] === 'a',
    });
    expect(kinds(rules, read)).toEqual([]);
    expect(kinds(rules, { ...update, body: { TableName: 'b' } })).toEqual([]);
    expect(kinds(rules, update)).toEqual(['lose-answer']);
    expect(injected.fired).toBe(1);
  });

  test('strikes as many times as it says', () => {
    const rules = newRules();
    const injected = rules.inject(fault.loseRequest(), { times: 2 });
    expect(Array.from({ length: 4 }, () => kinds(rules, update).length)).toEqual([1, 1, 0, 0]);
    expect(injected.fired).toBe(2);
  });

  test('strikes by chance as often as its probability says, and alike for the same seed', () => {
    const sequence = (seed: number): number[] => {
      const rules = newRules(seed);
      rules.inject(fault.loseRequest(), { probability: 0.05 });
      return Array.from({ length: 20_000 }, () => rules.strike(update).length);
    };
    const struck = sequence(7).reduce((sum, count) => sum + count, 0);
    expect(struck).toBeGreaterThan(800);
    expect(struck).toBeLessThan(1_200);
    expect(sequence(7)).toEqual(sequence(7));
    expect(sequence(8)).not.toEqual(sequence(7));
  });

  test('with probability 0 never strikes', () => {
    const rules = newRules();
    rules.inject(fault.loseRequest(), { probability: 0 });
    expect(Array.from({ length: 1_000 }, () => rules.strike(update).length).every((count) => count === 0)).toBe(true);
  });

  test('ends when it is released, and says so to those that it holds', async () => {
    const rules = newRules();
    const injected = rules.inject(fault.holdAnswer());
    const [strike] = rules.strike(update);
    injected.release();
    await expect(strike!.released).resolves.toBeUndefined();
    expect(kinds(rules, update)).toEqual([]);
  });

  test('tells when it has struck often enough', async () => {
    const rules = newRules();
    const injected = rules.inject(fault.loseAnswer());
    const twice = injected.untilFired(2).then(() => injected.fired);
    rules.strike(update);
    await injected.untilFired();
    rules.strike(update);
    expect(await twice).toBe(2);
  });

  test.each<[FaultRule, string]>([
    [{ times: 0 }, 'times'],
    [{ times: 1.5 }, 'times'],
    [{ probability: 1.01 }, 'probability'],
    [{ probability: Number.NaN }, 'probability'],
    [{ operations: [] }, 'operations'],
  ])('like %j is refused', (rule, field) => {
    const inject = () => newRules().inject(fault.loseAnswer(), rule);
    expect(inject).toThrow(ValidationError);
    expect(inject).toThrow(field);
  });
});

describe('several faults', () => {
  test('that decide the outcome strike one at a time, in the order of injection', () => {
    const rules = newRules();
    const first = rules.inject(fault.throttle(), { times: 1 });
    const second = rules.inject(fault.loseAnswer());
    expect(kinds(rules, update)).toEqual(['answer']);
    expect([first.fired, second.fired]).toEqual([1, 0]);
    expect(kinds(rules, update)).toEqual(['lose-answer']);
  });

  test('that only delay or misdate strike together with one that decides', () => {
    const rules = newRules();
    rules.inject(fault.loseAnswer());
    rules.inject(fault.shiftDate(1));
    rules.inject(fault.holdRequest(1));
    expect(kinds(rules, update)).toEqual(['lose-answer', 'shift-date', 'hold-request']);
  });

  test('end together when all is cleared', () => {
    const rules = newRules();
    rules.inject(fault.loseAnswer());
    rules.inject(fault.shiftDate(1));
    rules.clear();
    expect(kinds(rules, update)).toEqual([]);
  });
});

describe('a fault spares requests that cannot have it', () => {
  test('a transaction conflict spares reads', () => {
    const rules = newRules();
    const injected = rules.inject(fault.transactionConflict(), { times: 1 });
    expect(kinds(rules, read)).toEqual([]);
    expect(kinds(rules, update)).toEqual(['answer']);
    expect(injected.fired).toBe(1);
  });

  test('a partial batch spares batches that are small enough', () => {
    const rules = newRules();
    rules.inject(fault.processOnly(2));
    const batch = (...writes: string[]): DynamoRequest => ({
      operation: 'BatchWriteItem',
      body: { RequestItems: { a: writes } },
    });
    expect(kinds(rules, batch('1', '2'))).toEqual([]);
    expect(kinds(rules, batch('1', '2', '3'))).toEqual(['process-only']);
  });
});

test.each([
  () => fault.processOnly(0),
  () => fault.holdAnswer(-1),
  () => fault.holdRequest(Number.NaN),
  () => fault.shiftDate(Infinity),
])('%s is refused', (make) => {
  expect(make).toThrow(ValidationError);
});
