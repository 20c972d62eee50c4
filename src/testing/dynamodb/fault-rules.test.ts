import { expect, test } from 'vitest';
import { ValidationError } from '../../core/errors.js';
import { Random } from '../conformance/kit/random.js';
import type { DynamoRequest } from './dynamo-request.js';
import { fault } from './fault.js';
import { type FaultRule, FaultRules } from './fault-rules.js';

const update: DynamoRequest = { operation: 'UpdateItem', body: { TableName: 'a' } };
const read: DynamoRequest = { operation: 'GetItem', body: { TableName: 'a' } };

const newRules = (seed = 1): FaultRules => new FaultRules(new Random(seed));
const kinds = (rules: FaultRules, request: DynamoRequest): string[] =>
  rules.strike(request).map((strike) => strike.fault.kind);

test('a rule without conditions matches every request', () => {
  const rules = newRules();
  const injected = rules.inject(fault.loseAnswer());
  expect([kinds(rules, update), kinds(rules, read)]).toEqual([['lose-answer'], ['lose-answer']]);
  expect(injected.fired).toBe(2);
});

test('a rule matches only the operations that it names and the requests that its predicate accepts', () => {
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

test('a rule matches at most `times` requests', () => {
  const rules = newRules();
  const injected = rules.inject(fault.loseRequest(), { times: 2 });
  expect(Array.from({ length: 4 }, () => kinds(rules, update).length)).toEqual([1, 1, 0, 0]);
  expect(injected.fired).toBe(2);
});

test('a rule matches at random with its probability, and equally for the same seed', () => {
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

test('a rule with probability 0 never matches', () => {
  const rules = newRules();
  rules.inject(fault.loseRequest(), { probability: 0 });
  expect(Array.from({ length: 1_000 }, () => rules.strike(update).length).every((count) => count === 0)).toBe(true);
});

test('a released rule ends and releases the requests that it holds', async () => {
  const rules = newRules();
  const injected = rules.inject(fault.holdAnswer());
  const [strike] = rules.strike(update);
  injected.release();
  await expect(strike!.released).resolves.toBeUndefined();
  expect(kinds(rules, update)).toEqual([]);
});

test('untilFired resolves when a rule has matched often enough', async () => {
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
])('a rule like %j is refused', (rule, field) => {
  const inject = () => newRules().inject(fault.loseAnswer(), rule);
  expect(inject).toThrow(ValidationError);
  expect(inject).toThrow(field);
});

test('of several faults that decide the outcome only the first injected one applies', () => {
  const rules = newRules();
  const first = rules.inject(fault.throttle(), { times: 1 });
  const second = rules.inject(fault.loseAnswer());
  expect(kinds(rules, update)).toEqual(['answer']);
  expect([first.fired, second.fired]).toEqual([1, 0]);
  expect(kinds(rules, update)).toEqual(['lose-answer']);
});

test('faults that only delay or change the date apply together with one that decides the outcome', () => {
  const rules = newRules();
  rules.inject(fault.loseAnswer());
  rules.inject(fault.shiftDate(1));
  rules.inject(fault.holdRequest(1));
  expect(kinds(rules, update)).toEqual(['lose-answer', 'shift-date', 'hold-request']);
});

test('clearing the rules ends all faults', () => {
  const rules = newRules();
  rules.inject(fault.loseAnswer());
  rules.inject(fault.shiftDate(1));
  rules.clear();
  expect(kinds(rules, update)).toEqual([]);
});

test('a transaction conflict does not apply to reads', () => {
  const rules = newRules();
  const injected = rules.inject(fault.transactionConflict(), { times: 1 });
  expect(kinds(rules, read)).toEqual([]);
  expect(kinds(rules, update)).toEqual(['answer']);
  expect(injected.fired).toBe(1);
});

test('a partial batch does not apply to batches that are small enough', () => {
  const rules = newRules();
  rules.inject(fault.processOnly(2));
  const batch = (...writes: string[]): DynamoRequest => ({
    operation: 'BatchWriteItem',
    body: { RequestItems: { a: writes } },
  });
  expect(kinds(rules, batch('1', '2'))).toEqual([]);
  expect(kinds(rules, batch('1', '2', '3'))).toEqual(['process-only']);
});

test.each([
  () => fault.processOnly(0),
  () => fault.holdAnswer(-1),
  () => fault.holdRequest(Number.NaN),
  () => fault.shiftDate(Infinity),
])('the invalid fault %s is refused', (make) => {
  expect(make).toThrow(ValidationError);
});
