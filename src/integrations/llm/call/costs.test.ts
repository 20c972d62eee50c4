import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_USAGE, type Usage } from '../usage/usage.js';
import { NOTHING_SEEN, settlementOf } from './call-end.js';
import { Estimator } from './estimator.js';
import { costsByKind, type FailureKind } from './failure.js';
import { learn, typicalOutput, UNLEARNED } from './learning.js';
import { actualsOf, holdOf } from './measures.js';
import { costOf, priceOf } from './prices.js';

const usageOf = (inputTokens: number, outputTokens: number, others: Partial<Usage> = {}): Usage => ({
  ...NO_USAGE,
  inputTokens,
  outputTokens,
  ...others,
});
const call = { api: 'openai-chat', model: 'gpt-4o', stream: false, user: null } as const;
const sized = (characters: number, maxOutputTokens: number | null) => ({
  call,
  prompt: { characters, tokens: 0, texts: ['x'.repeat(characters)] },
  maxInputTokens: characters,
  maxOutputTokens,
});

describe('prices', () => {
  test('a cost is rounded up to whole micro-dollars, and exact where floating point is not', () => {
    const price = { input: 0.1, output: 0.2, cachedInput: 0.025, cacheWrite: 0.125 };
    expect(costOf(price, usageOf(3, 0))).toBe(1);
    expect(costOf({ input: 0.1, output: 0 }, usageOf(30, 0))).toBe(3);
    expect(costOf(price, usageOf(100, 10, { cachedInputTokens: 40, cacheWriteTokens: 40 }))).toBe(10);
  });

  test('a cost is at least the sum of its parts, and less than one micro-dollar more', () => {
    const price = fc.integer({ min: 0, max: 100_000_000 }).map((millionths) => millionths / 1e6);
    const tokens = fc.nat(10_000_000);
    fc.assert(
      fc.property(price, price, tokens, tokens, (input, output, inputTokens, outputTokens) => {
        const exact =
          BigInt(Math.round(input * 1e6)) * BigInt(inputTokens) +
          BigInt(Math.round(output * 1e6)) * BigInt(outputTokens);
        const cost = BigInt(costOf({ input, output }, usageOf(inputTokens, outputTokens))) * 1_000_000n;
        expect(cost >= exact && cost < exact + 1_000_000n).toBe(true);
      }),
    );
  });

  test('the price of a dated model is that of the longest name that it continues, and an unknown model is refused', () => {
    const prices = { 'gpt-4': { input: 1, output: 1 }, 'gpt-4o': { input: 2, output: 2 } };
    expect(priceOf(prices, 'gpt-4o-2024-08-06').input).toBe(2);
    expect(priceOf(prices, 'gpt-4-turbo').input).toBe(1);
    expect(() => priceOf(prices, 'gpt-4.1')).toThrow('prices');
  });

  test('a hold covers an input that has to be written to the cache, and the settlement has the real price', () => {
    const measures = { rpm: 'calls', slots: 'calls', money: 'microdollars', in: 'uncached-input-tokens' } as const;
    const price = { input: 4, output: 10, cacheWrite: 5 };
    expect(holdOf(measures, usageOf(10, 1), price)).toEqual({ rpm: 1, slots: 1, money: 60, in: 10 });
    expect(actualsOf(measures, usageOf(10, 1, { cachedInputTokens: 4 }), price)).toEqual({ money: 50, in: 6 });
  });
});

describe('estimates', () => {
  test('the ratio of a resource is learned from its calls, and stays between a quarter and four', () => {
    const estimator = new Estimator('maximum', null);
    const before = estimator.estimate('chinese', sized(4_000, 100));
    expect(before.usage).toEqual(usageOf(1_000, 100));
    for (let calls = 0; calls < 50; calls++) estimator.learn('chinese', before, usageOf(2_700, 10));
    expect(estimator.estimate('chinese', sized(4_000, 100)).usage.inputTokens).toBeGreaterThan(2_650);
    expect(estimator.estimate('english', sized(4_000, 100)).usage.inputTokens).toBe(1_000);
    for (let calls = 0; calls < 50; calls++) estimator.learn('chinese', before, usageOf(1_000_000, 10));
    expect(estimator.estimate('chinese', sized(4_000, 100)).usage.inputTokens).toBeLessThanOrEqual(4_000);
  });

  test('the ratio never leaves its bounds, whatever the calls say', () => {
    const calls = fc.array(fc.record({ predicted: fc.nat(5_000), input: fc.nat(1e6), output: fc.nat(1e6) }));
    fc.assert(
      fc.property(calls, (made) => {
        const learned = made.reduce(learn, UNLEARNED);
        expect(learned.ratio >= 0.25 && learned.ratio <= 4).toBe(true);
        expect(typicalOutput(learned)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test('a typical output is above most of the outputs that were seen, and never above the maximum of the request', () => {
    const estimator = new Estimator('typical', null);
    const estimate = estimator.estimate('r', sized(4, 8_000));
    for (let calls = 0; calls < 40; calls++) estimator.learn('r', estimate, usageOf(1, 180 + (calls % 5) * 10));
    const { outputTokens } = estimator.estimate('r', sized(4, 8_000)).usage;
    expect(outputTokens).toBeGreaterThan(220);
    expect(outputTokens).toBeLessThan(400);
    expect(estimator.estimate('r', sized(4, 50)).usage.outputTokens).toBe(50);
  });

  test('a request without a maximum is estimated with the typical output', () => {
    const estimator = new Estimator('maximum', null);
    expect(estimator.estimate('r', sized(4, null)).usage.outputTokens).toBe(1_000);
    estimator.learn('r', estimator.estimate('r', sized(4, null)), usageOf(1, 20));
    expect(estimator.estimate('r', sized(4, null)).usage.outputTokens).toBe(50);
  });

  test('a tokenizer replaces the estimate of the input, and a wrong answer of it is refused', () => {
    expect(new Estimator('maximum', (text) => text.length).estimate('r', sized(9, 0)).usage.inputTokens).toBe(9);
    expect(() => new Estimator('maximum', () => 1.5).estimate('r', sized(9, 0))).toThrow('countTokens');
  });

  test('no more than a thousand resources are remembered', () => {
    const estimator = new Estimator('maximum', null);
    const estimate = estimator.estimate('r', sized(400, null));
    for (let at = 0; at <= 1_000; at++) estimator.learn(`r${at}`, estimate, usageOf(100, 1));
    expect(estimator.estimate('r0', sized(400, null)).usage.outputTokens).toBe(1_000);
    expect(estimator.estimate('r1', sized(400, null)).usage.outputTokens).toBe(3);
  });
});

describe('the end of a call', () => {
  const held = usageOf(100, 50);
  const exact = { usage: held, bound: held, isOutputBounded: true };
  const low = { usage: held, bound: usageOf(400, 800), isOutputBounded: true };
  const unanswered = (kind: FailureKind, estimate = exact) =>
    settlementOf({ kind: 'unanswered', failure: { kind, status: null } }, estimate, 0, costsByKind);

  test('a call that the provider refused or never got costs nothing, any other the most that it can have counted', () => {
    for (const kind of ['refused', 'failed', 'unreachable'] as const) {
      expect(unanswered(kind)).toEqual({ kind: 'rollback' });
    }
    for (const kind of ['timed-out', 'aborted', 'lost'] as const) {
      expect(unanswered(kind)).toEqual({ kind: 'keep' });
      expect(unanswered(kind, low)).toEqual({ kind: 'settle', usage: low.bound, isInputStated: false });
    }
  });

  test('a call that stops early never costs less than was held, stated, seen, or possible', () => {
    const failure = { kind: 'aborted', status: null } as const;
    const stateds = fc.option(fc.tuple(fc.nat(200), fc.nat(1_000)));
    fc.assert(
      fc.property(stateds, fc.nat(1_000), fc.constantFrom('commit', 'bound'), (stated, seen, policy) => {
        const usage = stated === null ? null : usageOf(...stated);
        const end = { kind: 'partial', usage, seen: NOTHING_SEEN, failure } as const;
        const settlement = settlementOf(end, low, seen, () => policy);
        const cost = settlement.kind === 'settle' ? settlement.usage : held;
        const least = policy === 'bound' ? low.bound : held;
        // An input of 0 tokens is none that was stated.
        expect(cost.inputTokens).toBe((stated?.[0] ?? 0) > 0 ? stated?.[0] : least.inputTokens);
        expect(cost.outputTokens).toBe(Math.max(least.outputTokens, stated?.[1] ?? 0, seen));
      }),
    );
  });

  test('a call without a maximum costs at least the bytes of the output that was seen, and one with a maximum no more than that', () => {
    const failure = { kind: 'aborted', status: null } as const;
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 400 }),
        fc.boolean(),
        (text, isOutputBounded) => {
          const seen = { characters: text.length, bytes: Buffer.byteLength(text) };
          const settle = (policy: 'bound' | 'commit') =>
            settlementOf(
              { kind: 'partial', usage: null, seen, failure },
              { ...exact, isOutputBounded },
              0,
              () => policy,
            );
          const costOfEnd = (policy: 'bound' | 'commit'): number => {
            const settlement = settle(policy);
            return settlement.kind === 'settle' ? settlement.usage.outputTokens : held.outputTokens;
          };
          if (isOutputBounded) expect(costOfEnd('bound')).toBe(held.outputTokens);
          else expect(costOfEnd('bound')).toBeGreaterThanOrEqual(seen.bytes);
          // What onThrow asks for is the estimate.
          expect(costOfEnd('commit')).toBe(held.outputTokens);
        },
      ),
    );
  });

  test('a call that ends without a stated usage keeps its estimate, which is not doubted', () => {
    const end = { kind: 'partial', usage: null, seen: NOTHING_SEEN, failure: null } as const;
    expect(settlementOf(end, low, 50, costsByKind)).toEqual({ kind: 'keep' });
  });

  test('the bound of a call is the most that its request allows, whatever was learned', () => {
    const estimator = new Estimator('typical', null);
    const request = sized(4_000, 8_000);
    for (let calls = 0; calls < 40; calls++) estimator.learn('r', estimator.estimate('r', request), usageOf(10, 20));
    const { usage, bound } = estimator.estimate('r', request);
    expect(usage.inputTokens).toBeLessThan(300);
    expect(usage.outputTokens).toBeLessThan(100);
    expect(bound).toEqual(usageOf(4_000, 8_000));
    // A tokenizer is believed. Of a request without a maximum no more is known than the estimate.
    expect(new Estimator('typical', () => 7).estimate('r', request).bound).toEqual(usageOf(7, 8_000));
    expect(estimator.estimate('r', sized(4, null)).bound.outputTokens).toBe(usage.outputTokens);
  });
});
