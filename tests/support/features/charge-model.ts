/** The rules of one rate: capacity, and refill per period, in millitokens. */
export interface ModelRate {
  readonly capacity: bigint;
  readonly refill: bigint;
  readonly periodMs: bigint;
}

export function rateOf(capacity: number, refill: number, periodMs: number): ModelRate {
  return { capacity: BigInt(capacity) * 1_000n, refill: BigInt(refill) * 1_000n, periodMs: BigInt(periodMs) };
}

/**
 * One bucket with one rate, as plainly as possible: every operation first adds the refill up to now and caps the balance.
 * There is no base, no lazy cap, no form of a write and no shard.
 */
export class ChargeModel {
  #rate: ModelRate;
  #balance: bigint;
  #atMs: bigint;
  /** Ids of charges and credits, with the time at which they are forgotten. */
  readonly #receipts = new Map<string, bigint>();
  consumed = 0n;

  constructor(rate: ModelRate, nowMs: number) {
    this.#rate = rate;
    this.#balance = rate.capacity;
    this.#atMs = BigInt(nowMs);
  }

  /** In whole tokens, rounded down. */
  available(nowMs: number): number {
    this.#refill(nowMs);
    return Number((this.#balance - modulo(this.#balance, 1_000n)) / 1_000n);
  }

  take(tokens: number, nowMs: number): boolean {
    this.#refill(nowMs);
    const amount = BigInt(tokens) * 1_000n;
    if (this.#balance < amount) return false;
    this.#move(-amount);
    return true;
  }

  charge(tokens: number, nowMs: number, id?: string): void {
    if (!this.#isNew(id, nowMs)) return;
    this.#refill(nowMs);
    this.#move(BigInt(tokens) * -1_000n);
  }

  credit(tokens: number, nowMs: number, id?: string): void {
    if (!this.#isNew(id, nowMs)) return;
    this.#refill(nowMs);
    this.#move(BigInt(tokens) * 1_000n);
  }

  reset(nowMs: number): void {
    this.#refill(nowMs);
    this.#balance = this.#rate.capacity;
  }

  change(rate: ModelRate, nowMs: number): void {
    this.#refill(nowMs);
    this.#rate = rate;
    this.#move(0n);
  }

  #move(delta: bigint): void {
    this.consumed -= delta;
    this.#balance += delta;
    if (this.#balance > this.#rate.capacity) this.#balance = this.#rate.capacity;
  }

  #refill(nowMs: number): void {
    const { refill, periodMs, capacity } = this.#rate;
    const toMs = BigInt(nowMs);
    this.#balance += (toMs * refill) / periodMs - (this.#atMs * refill) / periodMs;
    if (this.#balance > capacity) this.#balance = capacity;
    this.#atMs = toMs;
  }

  #isNew(id: string | undefined, nowMs: number): boolean {
    if (id === undefined) return true;
    const endMs = this.#receipts.get(id);
    if (endMs !== undefined && endMs > BigInt(nowMs)) return false;
    this.#receipts.set(id, ((BigInt(nowMs) + 86_400_000n + 999n) / 1_000n) * 1_000n);
    return true;
  }
}

function modulo(value: bigint, by: bigint): bigint {
  const rest = value % by;
  return rest < 0n ? rest + by : rest;
}
