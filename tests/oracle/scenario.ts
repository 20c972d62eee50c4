import type { Rate } from '../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../src/core/units.js';

/** Thousandths of the limit's capacity at that time: more than 1000 can never fit. */
export interface Share {
  readonly limit: number;
  readonly permille: number;
}

export interface ScenarioStep {
  readonly client: number;
  /** The time since the previous step. */
  readonly afterMs: number;
  readonly does:
    | {
        readonly kind: 'group';
        readonly asks: readonly (readonly Share[])[];
        /** Thousandths of the capacity that each ask must leave, by priority. */
        readonly reserves?: readonly number[];
        readonly debits: readonly Share[];
        readonly refunds: readonly Share[];
      }
    | { readonly kind: 'change'; readonly limit: number; readonly rate: Rate }
    /** null: a resume. */
    | { readonly kind: 'pause'; readonly forMs: number | null };
}

export interface Scenario {
  readonly rates: readonly Rate[];
  /** The limits that are shadows. Left out: none. */
  readonly shadows?: ReadonlySet<number>;
  readonly createdAtMs: EpochMs;
  /** Slots are whole and have holders: only the end of a lease gives them back, and all of them. */
  readonly leases?: boolean;
  readonly steps: readonly ScenarioStep[];
}

export interface ScenarioOptions {
  readonly steps: number;
  /** Whether limits change during the scenario. */
  readonly changes: boolean;
  /** Whether asks have priorities. */
  readonly priorities?: boolean;
  /** Whether the bucket is paused and resumed. */
  readonly pauses?: boolean;
  /** Whether limits may be shadows. */
  readonly shadows?: boolean;
  /** Amounts of 1e12 tokens and periods of up to a year, whose products and debts exceed 2^53. */
  readonly huge: boolean;
}

const CLIENTS = 4;
const YEAR_MS = 366 * 86_400_000;

/** The same seed gives the same scenario: 2 rates, or 2 rates and slots, and clients in random order. */
export function randomScenario(seed: number, options: ScenarioOptions): Scenario {
  const random = mulberry32(seed);
  const int = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1));
  const chance = (part: number): boolean => random() < part;

  const rate = (): Rate =>
    options.huge
      ? {
          kind: 'rate',
          capacityMilli: int(1, 1e12) * 1_000,
          refillMilli: int(1, 1e12) * 1_000,
          refillPeriodMs: int(1, YEAR_MS),
        }
      : {
          kind: 'rate',
          capacityMilli: int(1, 50) * 1_000,
          refillMilli: int(1, 20) * 1_000,
          refillPeriodMs: int(1, 5_000),
        };
  const slow: Rate = {
    kind: 'rate',
    capacityMilli: int(1, 500),
    refillMilli: int(1, 100),
    refillPeriodMs: int(1, 100_000),
  };
  const slots: Rate = { kind: 'concurrent', capacityMilli: int(1, 8) * 1_000, refillMilli: 0, refillPeriodMs: 0 };
  const rates = [rate(), slow, ...(chance(0.5) ? [slots] : [])];

  const limit = (): number => int(0, rates.length - 1);
  const share = (of: number): Share => ({ limit: of, permille: chance(0.05) ? 0 : int(1, 1_050) });
  const shares = (most: number): readonly Share[] => Array.from({ length: int(0, most) }, () => share(limit()));
  const ask = (): readonly Share[] => {
    const asked = rates.flatMap((_, of) => (chance(0.6) ? [share(of)] : []));
    return asked.length > 0 ? asked : [share(limit())];
  };
  const pause = (): number => {
    if (chance(0.5)) return 0;
    if (chance(0.9)) return int(0, 200);
    return int(0, options.huge && chance(0.3) ? 86_400_000 : 60_000);
  };
  const reserve = (): number => (options.priorities === true && chance(0.5) ? int(1, 1_000) : 0);
  const does = (): ScenarioStep['does'] => {
    const done = doesPlainly();
    return done.kind === 'group' && options.priorities === true
      ? { ...done, reserves: done.asks.map(reserve).toSorted((a, b) => a - b) }
      : done;
  };
  const doesPlainly = (): ScenarioStep['does'] => {
    if (options.pauses === true && chance(0.08)) {
      return { kind: 'pause', forMs: chance(0.4) ? null : int(1, 2_000) };
    }
    const kind = random();
    if (options.changes && kind < 0.05) return { kind: 'change', limit: limit(), rate: rate() };
    if (kind < 0.6) return { kind: 'group', asks: [ask()], debits: [], refunds: [] };
    if (kind < 0.75) return { kind: 'group', asks: [], debits: [share(limit())], refunds: [] };
    if (kind < 0.9) return { kind: 'group', asks: [], debits: [], refunds: [share(limit())] };
    return { kind: 'group', asks: Array.from({ length: int(1, 4) }, ask), debits: shares(2), refunds: shares(2) };
  };

  const shadows = new Set(options.shadows === true ? rates.flatMap((_, of) => (chance(0.5) ? [of] : [])) : []);

  return {
    rates,
    ...(shadows.size === 0 ? {} : { shadows }),
    createdAtMs: 1_763_000_000_000 + int(0, 1e6),
    steps: Array.from({ length: options.steps }, () => ({
      client: int(1, CLIENTS),
      afterMs: pause(),
      does: does(),
    })),
  };
}

/** A small seeded generator of numbers from 0 (included) to 1 (excluded). */
function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
