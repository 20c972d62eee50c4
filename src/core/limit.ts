import { ValidationError } from './errors.js';
import { checkLimitName } from './identifiers.js';
import { checkKnownFields } from './known-fields.js';
import { hasBalance, type LimitKind } from './limit-kind.js';
import { checkLimitOptions, type LimitOptions, parseOptions, printOptions, sortedReserve } from './limit-options.js';
import { MAX_AMOUNT, MILLI } from './units.js';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The longest refill period: a leap year. */
const MAX_PERIOD_MS = 366 * DAY_MS;

export interface RateOptions extends LimitOptions {
  /** The capacity: how much may be taken at once from a full bucket. Default: the amount of the rate. */
  readonly burst?: number;
  /** What an acquire takes when its `consume` does not name this limit. Default: nothing. */
  readonly cost?: number;
}

const OPTIONS = ['cost', 'reserve', 'shadow', 'warnAt'] as const satisfies readonly (keyof RateOptions)[];
const OPTION_FIELDS: ReadonlySet<string> = new Set(OPTIONS);
const RATE_FIELDS: ReadonlySet<string> = new Set(['burst', ...OPTIONS]);
const CUSTOM_FIELDS: ReadonlySet<string> = new Set(['capacity', 'refillAmount', 'refillPeriodMs', ...OPTIONS]);

interface LimitFields<Name extends string> extends LimitOptions {
  readonly name: Name;
  readonly kind: LimitKind;
  readonly capacity: number;
  readonly refillAmount: number;
  readonly refillPeriodMs: number;
  readonly cost: number | undefined;
}

/**
 * One named rule: a rate (a token bucket), a number of slots, or a name that never refuses. Immutable. Prints in
 * the format of `Limit.parse`.
 */
export class Limit<Name extends string = string> {
  readonly name: Name;
  readonly kind: LimitKind;
  /** The size of the bucket: the burst of a rate, the number of slots of a concurrent limit, `Infinity` if unlimited. */
  readonly capacity: number;
  /** Tokens that refill in each `refillPeriodMs`; 0 unless `kind` is `rate`. */
  readonly refillAmount: number;
  /** 0 unless `kind` is `rate`: nothing refills. */
  readonly refillPeriodMs: number;
  readonly cost: number | undefined;
  /** By priority class: the share of the capacity that an ask of the class must leave. */
  readonly reserve: Readonly<Record<string, number>> | undefined;
  /** Whether the limit only reports what it would refuse. */
  readonly shadow: boolean;
  /** The share of the capacity from which on statuses and events say `near`. */
  readonly warnAt: number | undefined;

  private constructor(fields: LimitFields<Name>) {
    this.name = fields.name;
    this.kind = fields.kind;
    this.capacity = fields.capacity;
    this.refillAmount = fields.refillAmount;
    this.refillPeriodMs = fields.refillPeriodMs;
    this.cost = fields.cost;
    this.reserve = sortedReserve(fields.reserve);
    this.shadow = fields.shadow ?? false;
    this.warnAt = fields.warnAt;
    Object.freeze(this);
  }

  /** A rate for each second. `burst` is the capacity. Default: the amount. */
  static perSecond<const Name extends string>(name: Name, amount: number, options?: RateOptions): Limit<Name> {
    return rate(name, amount, SECOND_MS, options);
  }

  /** A rate for each minute. `burst` is the capacity. Default: the amount. */
  static perMinute<const Name extends string>(name: Name, amount: number, options?: RateOptions): Limit<Name> {
    return rate(name, amount, MINUTE_MS, options);
  }

  /** A rate for each hour. `burst` is the capacity. Default: the amount. */
  static perHour<const Name extends string>(name: Name, amount: number, options?: RateOptions): Limit<Name> {
    return rate(name, amount, HOUR_MS, options);
  }

  /** A rate for each day. `burst` is the capacity. Default: the amount. */
  static perDay<const Name extends string>(name: Name, amount: number, options?: RateOptions): Limit<Name> {
    return rate(name, amount, DAY_MS, options);
  }

  /** A rate of any period. */
  static custom<const Name extends string>(
    name: Name,
    rule: {
      readonly capacity: number;
      readonly refillAmount: number;
      readonly refillPeriodMs: number;
      readonly cost?: number;
    } & LimitOptions,
  ): Limit<Name> {
    checkLimitName(name);
    checkKnownFields(name, rule, CUSTOM_FIELDS);
    checkWhole(`${name}.capacity`, rule.capacity, 0, MAX_AMOUNT);
    // A bucket that has a capacity but never refills would deny for ever once empty. A capacity of 0 denies on purpose.
    checkWhole(`${name}.refillAmount`, rule.refillAmount, rule.capacity === 0 ? 0 : 1, MAX_AMOUNT);
    checkWhole(`${name}.refillPeriodMs`, rule.refillPeriodMs, 1, MAX_PERIOD_MS);
    if (rule.cost !== undefined) checkWhole(`${name}.cost`, rule.cost, 0, MAX_AMOUNT);
    checkLimitOptions(name, rule);
    return new Limit({ ...rule, name, kind: 'rate', cost: rule.cost });
  }

  /** Slots that a lease holds until it ends or expires. */
  static concurrent<const Name extends string>(
    name: Name,
    capacity: number,
    options: Omit<RateOptions, 'burst'> = {},
  ): Limit<Name> {
    checkLimitName(name);
    checkKnownFields(name, options, OPTION_FIELDS);
    checkWhole(`${name}.capacity`, capacity, 0, MAX_AMOUNT);
    if (options.cost !== undefined) checkWhole(`${name}.cost`, options.cost, 0, MAX_AMOUNT);
    checkLimitOptions(name, options);
    const rule = { name, kind: 'concurrent', capacity, refillAmount: 0, refillPeriodMs: 0 } as const;
    return new Limit({ ...options, ...rule, cost: options.cost });
  }

  /**
   * Never refuses. Callers may name it, and what they take of it counts as usage. Its options have no effect, except that
   * `reserve` names the classes that callers may use.
   */
  static unlimited<const Name extends string>(name: Name, options: Omit<RateOptions, 'burst'> = {}): Limit<Name> {
    checkLimitName(name);
    checkKnownFields(name, options, OPTION_FIELDS);
    if (options.cost !== undefined) checkWhole(`${name}.cost`, options.cost, 0, MAX_AMOUNT);
    checkLimitOptions(name, options);
    const capacity = Number.POSITIVE_INFINITY;
    const rule = { name, kind: 'unlimited', capacity, refillAmount: 0, refillPeriodMs: 0 } as const;
    return new Limit({ ...options, ...rule, cost: options.cost });
  }

  /**
   * Reads `rpm:100/min`, `tpm:10000/min:50000` (burst), `jobs:500/90s`, `slots:20/concurrent`, `tpm:unlimited`, each with
   * an optional `@cost`, then options such as `!reserve.batch=0.3!shadow!warnAt=0.8`.
   */
  static parse(text: string): Limit {
    return parseLimit(text);
  }

  /** @internal The limit as a bucket stores it: the options of a config come with each ask. */
  withoutOptions(): Limit<Name> {
    if (this.reserve === undefined && !this.shadow && this.warnAt === undefined) return this;
    const { name, kind, capacity, refillAmount, refillPeriodMs, cost } = this;
    return new Limit({ name, kind, capacity, refillAmount, refillPeriodMs, cost });
  }

  /** @internal */
  get capacityMilli(): number {
    return this.capacity * MILLI;
  }

  /** @internal */
  get refillMilli(): number {
    return this.refillAmount * MILLI;
  }

  /** `console.log(limit)` prints the rule, not its fields. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Limit(${this.toString()})`;
  }

  /** The text that `Limit.parse` reads. */
  toString(): string {
    const cost = this.cost === undefined ? '' : `@${this.cost}`;
    return `${this.name}:${this.#printRule()}${cost}${printOptions(this)}`;
  }

  #printRule(): string {
    switch (this.kind) {
      case 'unlimited':
        return 'unlimited';
      case 'concurrent':
        return `${this.capacity}/concurrent`;
      case 'rate': {
        const burst = this.capacity === this.refillAmount ? '' : `:${this.capacity}`;
        return `${this.refillAmount}/${printPeriod(this.refillPeriodMs)}${burst}`;
      }
    }
  }
}

function rate<Name extends string>(
  name: Name,
  amount: number,
  periodMs: number,
  options: RateOptions = {},
): Limit<Name> {
  checkLimitName(name);
  checkKnownFields(name, options, RATE_FIELDS);
  const { burst, ...rest } = options;
  return Limit.custom(name, { ...rest, capacity: burst ?? amount, refillAmount: amount, refillPeriodMs: periodMs });
}

/** Whether the limit of that name is an unlimited one. */
export function isUnlimitedIn(limits: readonly Limit[], name: string): boolean {
  return limits.some((limit) => limit.name === name && !hasBalance(limit.kind));
}

/** The balance, in millitokens, of a limit of which nothing is taken: an unlimited one has none. */
export function fullTokens({
  kind,
  capacityMilli,
}: {
  readonly kind: LimitKind;
  readonly capacityMilli: number;
}): number {
  return hasBalance(kind) ? capacityMilli : 0;
}

/** Whether two limits are the same rule for a bucket. The default cost and the options are not part of the rule. */
export function sameRule(a: Limit, b: Limit): boolean {
  return (
    a.name === b.name &&
    a.kind === b.kind &&
    a.capacity === b.capacity &&
    a.refillAmount === b.refillAmount &&
    a.refillPeriodMs === b.refillPeriodMs
  );
}

/** The maximum for one bucket: everything that an acquire may take must fit into one write. */
export const MAX_LIMITS = 32;

/** Refuses a value that is not a list of limits with different names. */
export function checkLimits(field: string, limits: unknown): asserts limits is readonly Limit[] {
  if (!Array.isArray(limits)) throw new ValidationError(field, 'a list of limits', limits);
  if (limits.length > MAX_LIMITS) throw new ValidationError(field, `at most ${MAX_LIMITS} limits`, limits.length);
  const seen = new Set<string>();
  for (const limit of limits as readonly unknown[]) {
    if (!(limit instanceof Limit))
      throw new ValidationError(field, 'built with Limit.perMinute(...) or another method of Limit', limit);
    if (seen.has(limit.name))
      throw new ValidationError(field, `without a second limit named ${limit.name}`, String(limit));
    seen.add(limit.name);
  }
}

export function checkWhole(field: string, value: unknown, least: number, most: number): asserts value is number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return;
  throw new ValidationError(field, `a whole number from ${least} to ${most}`, value);
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  sec: SECOND_MS,
  min: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
};

const LIMIT_TEXT =
  /^(?<name>[^:/@!\s]+):(?:(?<unlimited>unlimited)|(?<amount>\d+)\/(?:(?<slots>concurrent)|(?<count>[1-9]\d*)?(?<unit>ms|sec|s|min|hour|day)(?::(?<burst>\d+))?))(?:@(?<cost>\d+))?(?<options>(?:![^!\s]+)*)$/;

function parseLimit(text: string): Limit {
  const parts = typeof text === 'string' ? LIMIT_TEXT.exec(text)?.groups : undefined;
  const options = parseOptions(parts?.['options'] ?? '');
  if (parts === undefined || options === undefined) {
    throw new ValidationError(
      'limit',
      'a limit such as "rpm:100/min", "tpm:10000/min:50000", "jobs:500/90s", "slots:20/concurrent" or "tpm:unlimited" (units ms, sec, min, hour, day), with options such as "!reserve.batch=0.3"',
      text,
    );
  }
  const { name = '', unit = '' } = parts;
  const amount = Number(parts['amount']);
  const rest = parts['cost'] === undefined ? options : { ...options, cost: Number(parts['cost']) };
  if (parts['unlimited'] !== undefined) return Limit.unlimited(name, rest);
  if (parts['slots'] !== undefined) return Limit.concurrent(name, amount, rest);
  return Limit.custom(name, {
    capacity: Number(parts['burst'] ?? amount),
    refillAmount: amount,
    refillPeriodMs: Number(parts['count'] ?? 1) * (UNITS_MS[unit] ?? Number.NaN),
    ...rest,
  });
}

const PRINTED_UNITS = [
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['min', MINUTE_MS],
  ['sec', SECOND_MS],
  ['ms', 1],
] as const;

/** The largest unit that divides the period: 90000 is `90sec`, 60000 is `min`. */
function printPeriod(periodMs: number): string {
  for (const [unit, unitMs] of PRINTED_UNITS) {
    const count = periodMs / unitMs;
    if (Number.isInteger(count)) return count === 1 ? unit : `${count}${unit}`;
  }
  return `${periodMs}ms`;
}
