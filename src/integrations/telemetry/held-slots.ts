import type { SlotsHeld } from '../../limiter/events/limiter-event.js';

/** The slots of one lease: their number by the labels of their series. */
interface Held {
  readonly expiresAtMs: number;
  readonly slots: readonly (readonly [series: string, amount: number])[];
}

interface SlotSeries {
  readonly value: number;
  readonly labels: readonly [limit: string, resource: string];
}

const FIRST_SWEEP = 1_000;

/**
 * The slots that leases of this process hold. A lease that another process ends, or that no process ends, stops counting at
 * its expiry.
 */
export class HeldSlots {
  readonly #now: () => number;
  readonly #leases = new Map<string, Held>();
  /** Every series that ever was, so that one without slots reads 0. Bounded by the names of limits and resources. */
  readonly #series = new Map<string, SlotSeries['labels']>();
  #sweepAt = FIRST_SWEEP;

  constructor(now: () => number) {
    this.#now = now;
  }

  note(event: SlotsHeld, resource: string, limitOf: (name: string) => string): void {
    const { namespace, entityId, leaseId, expiresAt } = event;
    const key = `${namespace}\n${entityId}\n${event.resource}\n${leaseId}`;
    if (expiresAt === null) {
      this.#leases.delete(key);
      return;
    }
    const slots = Object.entries(event.slots).map(([name, amount]) => {
      const limit = limitOf(name);
      const series = `${limit}\n${resource}`;
      this.#series.set(series, [limit, resource]);
      return [series, amount] as const;
    });
    this.#leases.set(key, { expiresAtMs: expiresAt.getTime(), slots });
    if (this.#leases.size >= this.#sweepAt) this.#dropExpired();
  }

  read(): readonly SlotSeries[] {
    this.#dropExpired();
    const sums = new Map<string, number>();
    for (const { slots } of this.#leases.values()) {
      for (const [series, amount] of slots) sums.set(series, (sums.get(series) ?? 0) + amount);
    }
    return [...this.#series].map(([series, labels]) => ({ value: sums.get(series) ?? 0, labels }));
  }

  #dropExpired(): void {
    const nowMs = this.#now();
    for (const [key, { expiresAtMs }] of this.#leases) if (expiresAtMs <= nowMs) this.#leases.delete(key);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#leases.size);
  }
}
