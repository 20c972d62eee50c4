import { ValidationError } from '../../core/errors.js';
import type { Random } from '../conformance/kit/random.js';
import type { DynamoRequest } from './dynamo-request.js';
import { type Fault, isDecisive } from './fault.js';

/** Selects the requests that a fault applies to. All given conditions must hold. */
export interface FaultRule {
  /** Only these operations, such as `UpdateItem`. */
  readonly operations?: readonly string[];
  readonly when?: (request: DynamoRequest) => boolean;
  /** How many requests the fault applies to at most. Default: no limit. */
  readonly times?: number;
  /** The probability that the fault applies to a matching request, from 0 to 1. Default: 1. */
  readonly probability?: number;
}

/** An active fault. */
export interface InjectedFault {
  /** How many requests it was applied to. */
  readonly fired: number;
  /** Resolves when it was applied to `times` requests. */
  readonly untilFired: (times?: number) => Promise<void>;
  /** Ends the fault and releases the requests that it holds. */
  readonly release: () => void;
}

/** A fault that applies to a request. The promise resolves when the fault is released. */
export interface Strike {
  readonly fault: Fault;
  readonly released: Promise<void>;
}

const RESOLUTION = 2 ** 32;

/** The active faults, in the order of injection. Of those that decide the outcome of a request, only the first applies. */
export class FaultRules {
  readonly #random: Random;
  readonly #active = new Set<ActiveFault>();

  constructor(random: Random) {
    this.#random = random;
  }

  inject(fault: Fault, rule: FaultRule = {}): InjectedFault {
    checkRule(rule);
    const active = new ActiveFault(fault, rule, () => this.#active.delete(active));
    this.#active.add(active);
    return active;
  }

  strike(request: DynamoRequest): readonly Strike[] {
    const strikes: Strike[] = [];
    let decided = false;
    for (const active of this.#active) {
      const decides = isDecisive(active.fault);
      if ((decides && decided) || !active.fits(request) || !this.#chance(active.probability)) continue;
      decided ||= decides;
      strikes.push(active.fire());
    }
    return strikes;
  }

  /** Ends all faults and releases the requests that they hold. */
  clear(): void {
    for (const active of this.#active) active.release();
  }

  #chance(probability: number): boolean {
    return probability >= 1 || this.#random.whole(0, RESOLUTION - 1) < probability * RESOLUTION;
  }
}

class ActiveFault implements InjectedFault {
  readonly fault: Fault;
  readonly #rule: FaultRule;
  readonly #released: Promise<void>;
  readonly #waiting = new Set<{ readonly times: number; readonly resolve: () => void }>();
  #fired = 0;
  readonly release: () => void;

  constructor(fault: Fault, rule: FaultRule, onRelease: () => void) {
    this.fault = fault;
    this.#rule = rule;
    let release = onRelease;
    this.#released = new Promise((resolve) => {
      release = () => {
        onRelease();
        resolve();
      };
    });
    this.release = release;
  }

  get fired(): number {
    return this.#fired;
  }

  get probability(): number {
    return this.#rule.probability ?? 1;
  }

  fits(request: DynamoRequest): boolean {
    const { operations, when, times = Infinity } = this.#rule;
    return (
      this.#fired < times &&
      (operations?.includes(request.operation) ?? true) &&
      this.fault.applies(request) &&
      (when?.(request) ?? true)
    );
  }

  fire(): Strike {
    this.#fired += 1;
    for (const waiter of this.#waiting) {
      if (this.#fired < waiter.times) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
    return { fault: this.fault, released: this.#released };
  }

  readonly untilFired = (times = 1): Promise<void> =>
    new Promise((resolve) => {
      if (this.#fired >= times) resolve();
      else this.#waiting.add({ times, resolve });
    });
}

function checkRule({ operations, times, probability }: FaultRule): void {
  if (operations?.length === 0) throw new ValidationError('operations', 'a list with at least one name', operations);
  if (times !== undefined && (!Number.isSafeInteger(times) || times < 1)) {
    throw new ValidationError('times', 'a whole number from 1 up', times);
  }
  if (probability !== undefined && !(probability >= 0 && probability <= 1)) {
    throw new ValidationError('probability', 'a number from 0 to 1', probability);
  }
}
