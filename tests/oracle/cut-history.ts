import { expect } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { MILLI } from '../../src/core/units.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import type { Random } from '../../src/testing/conformance/kit/random.js';
import type { FakeClock } from '../../src/testing/fake-clock.js';
import type { FeatureSpace } from '../support/features/portable-stores.js';
import { Model, type Part } from './model.js';

const RESOURCE = 'gpt-4';
const RESERVE = 0.25;
/** The index of a limit in the lists below, as the model knows it. */
const TPM = 0;
const RPM = 1;
const OPTIONS = { reserve: { batch: RESERVE } };
/** Primes, so that a balance is rarely a whole number of tokens. */
const OF_USER = Limit.custom('tpm', { capacity: 60, refillAmount: 13, refillPeriodMs: 997, ...OPTIONS });
const OF_TEAM = Limit.custom('tpm', { capacity: 90, refillAmount: 17, refillPeriodMs: 1_009, ...OPTIONS });
const requestsOf = (shadow: boolean): Limit =>
  Limit.custom('rpm', { capacity: 4, refillAmount: 1, refillPeriodMs: 1_201, shadow });

interface Ask {
  readonly tpm: number;
  readonly rpm: number;
  readonly cuts: boolean;
  readonly isBatch: boolean;
}

/** A granted lease, and what it has at the levels. */
interface Granted {
  readonly lease: Lease;
  readonly rpmTaken: number;
  tpm: number;
}

export interface HistoryOptions {
  /** Processes have their own images of the buckets. With one process, no image is ever old. */
  readonly processes: number;
  readonly steps: number;
  /** A store whose images may be old: an ask may be cut to less than there is. */
  readonly mayTakeLess: boolean;
}

/** What a history contained, to show that it covers what it is for. */
export interface Seen {
  asks: number;
  cut: number;
  denied: number;
  paused: number;
  exceeded: number;
  lessThanThereWas: number;
}

/**
 * Processes ask for tokens of a user and of its team: whole amounts, or at most an amount; with and without a class;
 * while one limit is a shadow, and buckets are paused. Two plain accounts, one for each level, say after every operation
 * what must be there. Operations come one after the other, so that the accounts know every answer.
 */
export class CutHistory {
  readonly seen: Seen = { asks: 0, cut: 0, denied: 0, paused: 0, exceeded: 0, lessThanThereWas: 0 };
  readonly #random: Random;
  readonly #options: HistoryOptions;
  readonly #clock: FakeClock;
  readonly #limiters: readonly RateLimiter[];
  readonly #isShadow: boolean;
  readonly #user: Model;
  readonly #team: Model;
  #granted: Granted[] = [];
  #pausedUntilMs = 0;

  private constructor(random: Random, options: HistoryOptions, clock: FakeClock, limiters: readonly RateLimiter[]) {
    this.#random = random;
    this.#options = options;
    this.#clock = clock;
    this.#limiters = limiters;
    this.#isShadow = random.whole(0, 1) === 1;
    this.#user = new Model([OF_USER, requestsOf(this.#isShadow)], clock.now());
    this.#team = new Model([OF_TEAM], clock.now());
  }

  static async play(space: FeatureSpace, random: Random, options: HistoryOptions): Promise<Seen> {
    const opened = Array.from({ length: options.processes }, async () =>
      space.process({ configCacheMs: 0, denyCacheMs: 0 }),
    );
    const limiters = (await Promise.all(opened)).map(({ limiter }) => limiter);
    const history = new CutHistory(random, options, space.clock, limiters);
    await history.#configure();
    for (let step = 0; step < options.steps; step++) await history.#step();
    return history.seen;
  }

  async #configure(): Promise<void> {
    const { entities, config } = this.#limiters[0]!;
    await entities.create({ id: 'team' });
    await entities.create({ id: 'user', parentId: 'team', cascade: true });
    await config.setEntityDefault('team', { limits: [OF_TEAM] });
    await config.setEntityDefault('user', { limits: [OF_USER, requestsOf(this.#isShadow)] });
  }

  async #step(): Promise<void> {
    await this.#clock.advance(this.#random.pick([0, 0, 0, 0, 7, 130, 900, 2_000]));
    for (const model of [this.#user, this.#team]) model.settleTo(this.#clock.now());
    const limiter = this.#random.pick(this.#limiters);
    const drawn = this.#random.whole(1, 100);
    if (drawn <= 60) await this.#ask(limiter);
    else if (drawn <= 90) await this.#correct();
    else await this.#pause(limiter);
    await this.#compare(limiter);
  }

  async #ask(limiter: RateLimiter): Promise<void> {
    const ask: Ask = {
      tpm: this.#random.whole(1, 80),
      rpm: this.#random.whole(0, 3),
      cuts: this.#random.whole(1, 3) > 1,
      isBatch: this.#random.whole(1, 3) === 1,
    };
    const { tpm, rpm, cuts, isBatch } = ask;
    this.seen.asks += 1;
    const expected = this.#expected(ask);
    const decision = await limiter.tryAcquire({
      entityId: 'user',
      resource: RESOURCE,
      consume: { tpm, rpm },
      ...(cuts ? { atMost: 'tpm' } : {}),
      ...(isBatch ? { priority: 'batch' } : {}),
    });
    expect([ask, decision.granted]).toEqual([ask, expected > 0]);
    if (!decision.granted) {
      this.seen.denied += 1;
      if (this.#isPaused) this.seen.paused += 1;
      expect(decision.reason === 'paused').toBe(this.#isPaused);
      return;
    }
    const taken = decision.lease.consumed['tpm'] ?? 0;
    this.#expectTaken(ask, taken, expected);
    const exceeded = decision.statuses.some((status) => status.exceeded);
    expect(exceeded).toBe(!this.#fits(this.#user, RPM, rpm, 0));
    if (exceeded) this.seen.exceeded += 1;
    const rpmTaken = exceeded ? 0 : rpm;
    this.#granted.push({ lease: decision.lease, rpmTaken, tpm: taken });
    this.#move(taken, rpmTaken);
  }

  #expectTaken({ tpm, cuts }: Ask, taken: number, expected: number): void {
    if (taken < tpm) this.seen.cut += 1;
    if (!cuts || !this.#options.mayTakeLess) {
      expect(taken).toBe(expected);
      return;
    }
    if (taken < expected) this.seen.lessThanThereWas += 1;
    expect(Number.isSafeInteger(taken) && taken >= 1 && taken <= expected, `${taken} of ${expected}`).toBe(true);
  }

  get #isPaused(): boolean {
    return this.#pausedUntilMs > this.#clock.now();
  }

  /** What the ask must take of `tpm` by the accounts; 0: it must be denied. */
  #expected({ tpm, rpm, cuts, isBatch }: Ask): number {
    if (this.#isPaused || (!this.#isShadow && !this.#fits(this.#user, RPM, rpm, 0))) return 0;
    const rooms = [this.#user, this.#team].map((model) => {
      const reserve = isBatch ? model.rates[TPM]!.capacityMilli * RESERVE : 0;
      return Math.floor((Number(model.tokensMilli[TPM]) - reserve) / MILLI);
    });
    const room = Math.min(tpm, ...rooms);
    return room >= (cuts ? 1 : tpm) ? room : 0;
  }

  #fits(model: Model, limit: number, tokens: number, reserveMilli: number): boolean {
    return model.fits([[{ limit, milli: tokens * MILLI, reserveMilli }]])[0] === true;
  }

  /** Takes from both accounts; gives back where an amount is negative. */
  #move(tpm: number, rpm: number): void {
    const part = (limit: number, tokens: number): Part => ({ limit, milli: Math.abs(tokens) * MILLI, reserveMilli: 0 });
    const book = (model: Model, limit: number, tokens: number): void => {
      const moved = [part(limit, tokens)];
      model.book({ asks: [], debits: tokens > 0 ? moved : [], refunds: tokens < 0 ? moved : [] }, []);
    };
    book(this.#user, TPM, tpm);
    book(this.#user, RPM, rpm);
    book(this.#team, TPM, tpm);
  }

  /** One of the granted leases is settled for less or more, or rolled back. */
  async #correct(): Promise<void> {
    if (this.#granted.length === 0) return;
    const granted = this.#random.pick(this.#granted);
    if (this.#random.whole(1, 3) === 1) {
      await granted.lease.rollback();
      this.#granted = this.#granted.filter((other) => other !== granted);
      this.#move(-granted.tpm, -granted.rpmTaken);
      return;
    }
    const total = this.#random.whole(0, 2 * granted.tpm);
    await granted.lease.settle({ tpm: total });
    this.#move(total - granted.tpm, 0);
    granted.tpm = total;
  }

  /** A pause of the bucket of the team also stops its user. */
  async #pause(limiter: RateLimiter): Promise<void> {
    const target = { entityId: 'team', resource: RESOURCE };
    if (this.#isPaused) {
      await limiter.resume(target);
      this.#pausedUntilMs = 0;
      return;
    }
    const forMs = this.#random.whole(1, 1_500);
    await limiter.pause({ ...target, forMs, reason: 'vendor' });
    this.#pausedUntilMs = this.#clock.now() + forMs;
  }

  async #compare(limiter: RateLimiter): Promise<void> {
    const whole = (model: Model, limit: number): number => Math.floor(Number(model.tokensMilli[limit]) / MILLI);
    const [user, team] = await Promise.all(
      ['user', 'team'].map(async (entityId) => limiter.buckets.get({ entityId, resource: RESOURCE })),
    );
    const expected = [{ tpm: whole(this.#user, TPM), rpm: whole(this.#user, RPM) }, { tpm: whole(this.#team, TPM) }];
    for (const [at, bucket] of [user, team].entries()) {
      // Before its first ask, a bucket does not exist.
      const left = bucket?.limits.map(({ limit, available }) => [limit.name, available]);
      if (left !== undefined) expect(Object.fromEntries(left)).toEqual(expected[at]);
    }
  }
}
