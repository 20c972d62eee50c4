import fc from 'fast-check';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { isHeadgateError, ValidationError } from './errors.js';
import { checkLimits, checkWhole, Limit, MAX_LIMITS, sameRule } from './limit.js';

const RUNS = { numRuns: 2_000 };
const YEAR_MS = 366 * 86_400_000;

const name = fc.oneof(
  fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/).filter((text) => text !== 'wcu'),
  fc.constantFrom('rpm', 'constructor', 'toString', 'valueOf', 'concurrent', 'min', 'a'),
);
const amount = fc.oneof(fc.nat({ max: 1_000 }), fc.integer({ min: 0, max: 1e12 }), fc.constant(1e12));
const period = fc.oneof(
  fc.constantFrom(1, 60, 1_000, 60_000, 90_000, 3_600_000, 86_400_000, YEAR_MS),
  fc.integer({ min: 1, max: YEAR_MS }),
);
const cost = fc.option(amount, { nil: undefined });

/** Shares in thousandths, by class. */
const options = fc
  .dictionary(
    name,
    fc.integer({ min: 0, max: 1_000 }).map((n) => n / 1_000),
    { maxKeys: 3 },
  )
  .map((reserve) => (Object.keys(reserve).length === 0 ? {} : { reserve }))
  .chain((reserve) => fc.boolean().map((shadow) => (shadow ? { ...reserve, shadow } : reserve)))
  .chain((rest) => fc.nat({ max: 1_000 }).map((warnAt) => (warnAt === 0 ? rest : { ...rest, warnAt: warnAt / 1_000 })));

const rateLimit = fc
  .record({ name, capacity: amount, refillAmount: amount, refillPeriodMs: period, cost, options })
  .map(({ name: named, capacity, refillAmount, refillPeriodMs, cost: costs, options: rest }) =>
    Limit.custom(named, {
      capacity,
      refillAmount: capacity === 0 ? refillAmount : Math.max(1, refillAmount),
      refillPeriodMs,
      ...(costs === undefined ? {} : { cost: costs }),
      ...rest,
    }),
  );
const slots = fc
  .tuple(name, amount, cost, options)
  .map(([named, capacity, costs, rest]) =>
    Limit.concurrent(named, capacity, costs === undefined ? rest : { ...rest, cost: costs }),
  );
const unlimited = fc
  .tuple(name, cost)
  .map(([given, price]) => Limit.unlimited(given, price === undefined ? {} : { cost: price }));
const anyLimit: fc.Arbitrary<Limit> = fc.oneof(rateLimit, slots, unlimited);

describe('a limit as text', () => {
  test('a limit that is printed and parsed is the same limit', () => {
    fc.assert(
      fc.property(anyLimit, (limit) => {
        expect(Limit.parse(String(limit))).toEqual(limit);
      }),
      RUNS,
    );
  });

  test.each([
    ['rpm:100/min', Limit.perMinute('rpm', 100)],
    ['tpm:10000/min:50000', Limit.perMinute('tpm', 10_000, { burst: 50_000 })],
    ['jobs:500/90sec', Limit.custom('jobs', { capacity: 500, refillAmount: 500, refillPeriodMs: 90_000 })],
    ['odd:7/977ms', Limit.custom('odd', { capacity: 7, refillAmount: 7, refillPeriodMs: 977 })],
    ['slots:20/concurrent', Limit.concurrent('slots', 20)],
    ['slots:20/concurrent@1', Limit.concurrent('slots', 20, { cost: 1 })],
    ['rps:5/sec@2', Limit.perSecond('rps', 5, { cost: 2 })],
    ['h:5/hour', Limit.perHour('h', 5)],
    ['d:5/7day:0', Limit.custom('d', { capacity: 0, refillAmount: 5, refillPeriodMs: 7 * 86_400_000 })],
    ['tpm:9/min!reserve.batch=0.3', Limit.perMinute('tpm', 9, { reserve: { batch: 0.3 } })],
    ['a:9/sec@1!reserve.b=1!reserve.c=0', Limit.perSecond('a', 9, { cost: 1, reserve: { c: 0, b: 1 } })],
    ['rpm:9/min!shadow', Limit.perMinute('rpm', 9, { shadow: true })],
    ['slots:9/concurrent!reserve.b=0.5!shadow', Limit.concurrent('slots', 9, { shadow: true, reserve: { b: 0.5 } })],
    ['rpm:9/min@1!shadow!warnAt=0.8', Limit.perMinute('rpm', 9, { warnAt: 0.8, cost: 1, shadow: true })],
    ['slots:9/concurrent!warnAt=1', Limit.concurrent('slots', 9, { warnAt: 1 })],
    ['off:0/day@0', Limit.perDay('off', 0, { cost: 0 })],
  ])('%s is what a limit prints as', (text, limit) => {
    expect(String(limit)).toBe(text);
    expect(Limit.parse(text)).toEqual(limit);
  });

  test('the text of a limit may have a number before its unit, and s for seconds', () => {
    expect(Limit.parse('a:500/90s')).toEqual(Limit.parse('a:500/90000ms'));
    expect(Limit.parse('a:1/1min')).toEqual(Limit.parse('a:1/60sec'));
    expect(Limit.parse('a:1/24hour')).toEqual(Limit.parse('a:1/day'));
  });

  test.each([
    ['', 'rpm', 'rpm:', 'rpm:100', 'rpm:100/', '100/min', ':100/min', 'rpm/min', 'rpm:/min', 'rpm 100/min'],
    ['rpm:-1/min', 'rpm:1.5/min', 'rpm:1e3/min', 'rpm:0x10/min', 'rpm:1_000/min', 'rpm:NaN/min', 'rpm:+1/min'],
    ['rpm:1/minute', 'rpm:1/m', 'rpm:1/h', 'rpm:1/week', 'rpm:1/MIN', 'rpm:1/0min', 'rpm:1/-1min', 'rpm:1/1.5min'],
    ['rpm:1/min:', 'rpm:1/min:x', 'rpm:1/min:-5', 'rpm:1/min:5:5', 'rpm:1/min@', 'rpm:1/min@-1', 'rpm:1/min@1@1'],
    ['rpm:1/min ', ' rpm:1/min', 'rpm:1/ min', 'rpm:1/min\n', 'rpm: 1/min', 'rpm:1/min:5 @1', 'rpm:1/min@1:5'],
    ['slots:20/concurrent:5', 'slots:20/2concurrent', 'slots:/concurrent', 'slots:20/concurrently'],
    ['wcu:1/min', '1a:1/min', '_a:1/min', 'a b:1/min', 'a#:1/min', `${'a'.repeat(65)}:1/min`, 'é:1/min'],
    ['rpm:1000000000001/min', 'rpm:1/min:1000000000001', 'rpm:1/min@1000000000001', 'rpm:1/367day', 'rpm:0/min:5'],
    ['rpm:99999999999999999999/min', `rpm:${'9'.repeat(400)}/min`, `rpm:1/${'9'.repeat(400)}ms`],
  ])('a malformed limit text is refused (%s, %s, %s and others)', (...texts) => {
    for (const text of texts) expect(() => Limit.parse(text), JSON.stringify(text)).toThrow(ValidationError);
  });

  test('parsing any text either succeeds or throws a ValidationError', () => {
    const pieces = fc.constantFrom(
      'rpm',
      ':',
      '/',
      '@',
      '1',
      '0',
      '100',
      'min',
      'ms',
      'concurrent',
      ' ',
      '-',
      'wcu',
      '.',
    );
    const noise = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 9 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(fc.oneof(noise, fc.anything()), (text) => {
        try {
          const limit = Limit.parse(text as string);
          expect(Limit.parse(String(limit))).toEqual(limit);
        } catch (error) {
          expect(isHeadgateError(error, 'input.invalid')).toBe(true);
        }
      }),
      RUNS,
    );
  });
});

describe('a limit', () => {
  test('the capacity of a limit is its burst, else its amount', () => {
    expect(Limit.perMinute('a', 5).capacity).toBe(5);
    expect(Limit.perMinute('a', 5, { burst: 9 })).toMatchObject({ capacity: 9, refillAmount: 5, kind: 'rate' });
    expect(Limit.perMinute('a', 5, { burst: 0 }).capacity).toBe(0);
    expect(Limit.concurrent('a', 5)).toMatchObject({
      capacity: 5,
      refillAmount: 0,
      refillPeriodMs: 0,
      kind: 'concurrent',
    });
  });

  test('a limit has its numbers also in millitokens', () => {
    expect(Limit.perMinute('a', 5, { burst: 9 })).toMatchObject({ capacityMilli: 9_000, refillMilli: 5_000 });
    expect(Limit.perMinute('a', 1e12)).toMatchObject({ capacityMilli: 1e15, refillMilli: 1e15 });
  });

  test('a limit cannot be changed', () => {
    const limit = Limit.perMinute('a', 5) as { capacity: number };
    expect(() => (limit.capacity = 6)).toThrow(TypeError);
  });

  const wrong = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e12 + 1, '5', null, undefined, 5n, {}] as number[];

  test.each(wrong.map((value) => [value]))('a limit with an amount of %s is refused', (value) => {
    for (const factory of ['perSecond', 'perMinute', 'perHour', 'perDay', 'concurrent'] as const) {
      expect(() => Limit[factory]('a', value)).toThrow(ValidationError);
    }
    const rule = { capacity: 5, refillAmount: 5, refillPeriodMs: 5 };
    for (const field of ['capacity', 'refillAmount', 'refillPeriodMs']) {
      expect(() => Limit.custom('a', { ...rule, [field]: value })).toThrow(ValidationError);
    }
    if (value === undefined) return;
    expect(() => Limit.perMinute('a', 5, { cost: value })).toThrow(ValidationError);
    expect(() => Limit.concurrent('a', 5, { cost: value })).toThrow(ValidationError);
    if (value !== null) expect(() => Limit.perMinute('a', 5, { burst: value })).toThrow(ValidationError);
  });

  test.each([
    ['shaddow', 'shadow', () => Limit.perMinute('rpm', 5, { shaddow: true } as never)],
    ['reserves', 'reserve', () => Limit.concurrent('rpm', 5, { reserves: { batch: 0.5 } } as never)],
    ['warnat', 'warnAt', () => Limit.unlimited('rpm', { warnat: 0.5 } as never)],
    [
      'refillPeriod',
      'refillPeriodMs',
      () => Limit.custom('rpm', { capacity: 1, refillAmount: 1, refillPeriod: 1 } as never),
    ],
  ])('an unknown option %s is refused, with the nearest known one', (given, known, build) => {
    expect(build).toThrow(expect.objectContaining({ code: 'input.invalid', field: `rpm.${given}` }));
    expect(build).toThrow(`did you mean ${known}?`);
  });

  test('every factory refuses an illegal limit name', () => {
    for (const illegal of ['', 'wcu', '1', 'a b', undefined as never]) {
      expect(() => Limit.perSecond(illegal, 1)).toThrow(ValidationError);
      expect(() => Limit.custom(illegal, { capacity: 1, refillAmount: 1, refillPeriodMs: 1 })).toThrow(ValidationError);
      expect(() => Limit.concurrent(illegal, 1)).toThrow(ValidationError);
    }
  });

  test('a rate that has a capacity but never refills is refused; a capacity of 0 is accepted', () => {
    const rule = { capacity: 1, refillAmount: 0, refillPeriodMs: 1 };
    expect(() => Limit.custom('a', rule)).toThrow('Expected `a.refillAmount` to be a whole number from 1');
    expect(Limit.custom('a', { ...rule, capacity: 0 }).capacity).toBe(0);
  });

  test('a period of 0 or of more than a leap year is refused', () => {
    for (const refillPeriodMs of [0, YEAR_MS + 1]) {
      expect(() => Limit.custom('a', { capacity: 1, refillAmount: 1, refillPeriodMs })).toThrow(ValidationError);
    }
  });
});

describe('lists and comparisons of limits', () => {
  test('two limits with different costs or options are the same rule', () => {
    fc.assert(
      fc.property(anyLimit, anyLimit, (a, b) => {
        const rule = (limit: Limit): string => String(limit).split(/[@!]/)[0]!;
        expect(sameRule(a, b)).toBe(rule(a) === rule(b));
        expect(sameRule(a, Limit.parse(rule(a)))).toBe(true);
      }),
      RUNS,
    );
  });

  test('a list of limits needs different names', () => {
    expect(() => checkLimits('limits', [Limit.perMinute('a', 1), Limit.perMinute('b', 1)])).not.toThrow();
    expect(() => checkLimits('limits', [])).not.toThrow();
    for (const wrong of [undefined, null, {}, 'rpm:1/min', [{ name: 'a' }], ['rpm:1/min'], [null]]) {
      expect(() => checkLimits('limits', wrong)).toThrow(ValidationError);
    }
    const twice = [Limit.perMinute('a', 1), Limit.concurrent('a', 1)];
    expect(() => checkLimits('limits', twice)).toThrow('without a second limit named a');
  });

  test('a list has at most as many limits as fit into one write', () => {
    const some = (count: number) => Array.from({ length: count }, (_, at) => Limit.perMinute(`l${at}`, 1));
    checkLimits('limits', some(MAX_LIMITS));
    expect(() => checkLimits('limits', some(MAX_LIMITS + 1))).toThrow(`at most ${MAX_LIMITS} limits`);
  });

  test('a whole number is accepted only within its bounds', () => {
    fc.assert(
      fc.property(fc.anything(), fc.integer({ min: -5, max: 5 }), (value, least) => {
        const isWhole = typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= 10;
        const check = (): void => checkWhole('field', value, least, 10);
        if (isWhole) expect(check).not.toThrow();
        else expect(check).toThrow(ValidationError);
      }),
      RUNS,
    );
  });
});

test('console.log prints a limit as its text, not as its fields', () => {
  expect(inspect([Limit.perMinute('rpm', 60)])).toBe('[ Limit(rpm:60/min) ]');
});
