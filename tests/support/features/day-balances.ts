interface Taken {
  readonly rpd: number;
  readonly tpd: number;
  readonly slots: number;
}

const DAY_MS = 86_400_000n;
const MILLI = 1_000n;

/** A rate per day that settles at every step, in millitokens. A millitoken arrives at the instant at which it is whole. */
class DayRate {
  readonly #capacityMilli: bigint;
  #milli: bigint;
  #nowMs: number;

  constructor(capacity: number, nowMs: number) {
    this.#capacityMilli = BigInt(capacity) * MILLI;
    this.#milli = this.#capacityMilli;
    this.#nowMs = nowMs;
  }

  pass(nowMs: number): void {
    const arrived = (atMs: number): bigint => (BigInt(atMs) * this.#capacityMilli) / DAY_MS;
    this.#move(arrived(nowMs) - arrived(this.#nowMs));
    this.#nowMs = nowMs;
  }

  take(tokens: number): void {
    this.#move(-BigInt(tokens) * MILLI);
  }

  fill(): void {
    this.#milli = this.#capacityMilli;
  }

  get tokens(): number {
    return Number(this.#milli / MILLI);
  }

  #move(milli: bigint): void {
    const moved = this.#milli + milli;
    this.#milli = moved < this.#capacityMilli ? moved : this.#capacityMilli;
  }
}

/** The balances of the bucket of a portable lease: 100 `rpd`, 100,000 `tpd`, 8 `slots`. */
export class DayBalances {
  readonly #rpd: DayRate;
  readonly #tpd: DayRate;
  #slots = 8;
  #taken: Taken = { rpd: 0, tpd: 0, slots: 0 };
  #others: Taken = { rpd: 0, tpd: 0, slots: 0 };

  constructor(nowMs: number) {
    this.#rpd = new DayRate(100, nowMs);
    this.#tpd = new DayRate(100_000, nowMs);
  }

  /** What other leases have taken and keep. */
  get others(): Taken {
    return this.#others;
  }

  /** The rates are full. Slots are free by what is taken of them. */
  fill(): void {
    this.#rpd.fill();
    this.#tpd.fill();
  }

  takeForOthers(taken: Taken): void {
    this.#others = taken;
    this.#rpd.take(taken.rpd);
    this.#tpd.take(taken.tpd);
    this.#slots -= taken.slots;
  }

  /** What is free once the lease has taken this in all. Time passes first. */
  after(nowMs: number, taken: Taken): Taken {
    this.#rpd.pass(nowMs);
    this.#tpd.pass(nowMs);
    this.#rpd.take(taken.rpd - this.#taken.rpd);
    this.#tpd.take(taken.tpd - this.#taken.tpd);
    this.#slots -= taken.slots - this.#taken.slots;
    this.#taken = { ...taken };
    return { rpd: this.#rpd.tokens, tpd: this.#tpd.tokens, slots: this.#slots };
  }
}
