import type { Rate } from '../../src/core/bucket/bucket.js';
import type { EpochMs } from '../../src/core/units.js';
import { type Group, Model, type Part, worthOf } from './model.js';
import type { Rules } from './rules.js';
import type { Scenario, Share, ScenarioStep } from './scenario.js';
import { at, fullImage, type ConditionalStore, type CreateStore, memoryStore } from './store.js';

export interface Findings {
  readonly steps: number;
  readonly writes: number;
  /** Asks that were granted although they did not fit. */
  readonly overAdmitted: number;
  /** Asks that were denied although they fitted. */
  readonly underAdmitted: number;
  /** Describes the first step after which the balances of store and model differ. */
  readonly firstMismatch: string | null;
  /** How many leases with slots have ended. */
  readonly endedLeases: number;
}

/** Runs a scenario by the rules on a store and on the model, and reports where the two differ. */
export async function runOracle(
  scenario: Scenario,
  rules: Rules,
  createStore: CreateStore = memoryStore,
): Promise<Findings> {
  const initial = fullImage(scenario.rates, scenario.createdAtMs);
  const model = new Model(scenario.rates, scenario.createdAtMs);
  const store = counted(await createStore(initial));
  const clients = rules(store, initial);
  let nowMs = scenario.createdAtMs;
  let overAdmitted = 0;
  let underAdmitted = 0;
  let firstMismatch: string | null = null;
  let pausedUntilMs = 0;
  const held = scenario.leases === true ? new HeldSlots() : null;

  for (const [index, { client, afterMs, does }] of scenario.steps.entries()) {
    nowMs += afterMs;
    model.settleTo(nowMs);
    if (does.kind === 'change') {
      const rate = sameKind(at(model.rates, does.limit), does.rate);
      // A base always increases, so it may be ahead of the clock. There is no refill until the clock reaches it.
      model.settleTo(await clients.change(client, does.limit, rate, nowMs));
      model.change(does.limit, rate);
    } else if (does.kind === 'pause') {
      // Of several pauses the latest end applies.
      pausedUntilMs = does.forMs === null ? 0 : Math.max(pausedUntilMs, nowMs + does.forMs);
      await clients.pause?.(does.forMs === null ? null : pausedUntilMs, nowMs);
    } else {
      const group = groupOf(does, model, held, scenario.shadows);
      const could = pausedUntilMs > nowMs ? group.asks.map(() => false) : model.fits(group.asks);
      const did = await clients.move(client, group, nowMs);
      const taken = model.book(group, did);
      held?.note(group, taken, model.rates);
      overAdmitted += did.filter((granted, ask) => granted && could[ask] !== true).length;
      underAdmitted += could.filter((fitted, ask) => fitted && did[ask] !== true).length;
    }
    firstMismatch ??= await mismatch(model, store, nowMs, `after step ${index} (${does.kind} of client ${client})`);
  }
  return {
    steps: scenario.steps.length,
    writes: store.writes(),
    overAdmitted,
    underAdmitted,
    firstMismatch,
    endedLeases: held?.ended ?? 0,
  };
}

function counted(store: ConditionalStore): ConditionalStore & { writes(): number } {
  let writes = 0;
  return {
    read: () => store.read(),
    write: (write) => {
      writes += 1;
      return store.write(write);
    },
    writes: () => writes,
  };
}

/** A new rule of the same kind, because a change of the kind is not made by one write. */
function sameKind(before: Rate, after: Rate): Rate {
  return before.refillPeriodMs === 0 ? { ...before, capacityMilli: after.capacityMilli } : after;
}

/** The slots of the open leases. */
class HeldSlots {
  readonly #held = new Map<string, Part>();
  #leases = 0;
  #ended = 0;

  get ended(): number {
    return this.#ended;
  }

  nextLease(): string {
    return `lease-${(this.#leases += 1)}`;
  }

  /** The oldest open lease of the limit ends. Returns null if there is none. */
  end(limit: number): Part | null {
    for (const [lease, part] of this.#held) {
      if (part.limit !== limit) continue;
      this.#held.delete(lease);
      this.#ended += 1;
      return { ...part, lease, reserveMilli: 0 };
    }
    return null;
  }

  note({ leases = [] }: Group, taken: readonly (readonly Part[])[], rates: readonly Rate[]): void {
    for (const [index, parts] of taken.entries()) {
      const slots = parts.find(({ limit, milli }) => at(rates, limit).refillPeriodMs === 0 && milli > 0);
      if (slots !== undefined) this.#held.set(at(leases, index), { ...slots });
    }
  }
}

/** Slots are never debited, and at most the held slots are given back. */
function groupOf(
  does: Extract<ScenarioStep['does'], { kind: 'group' }>,
  model: Model,
  leases: HeldSlots | null,
  shadows: ReadonlySet<number> = new Set(),
): Group {
  const part = ({ limit, permille }: Share): Part => {
    const { capacityMilli } = at(model.rates, limit);
    const milli = Number((BigInt(capacityMilli) * BigInt(permille)) / 1000n);
    const isWhole = leases !== null && at(model.rates, limit).refillPeriodMs === 0;
    return { limit, milli: isWhole ? Math.ceil(milli / 1_000) * 1_000 : milli, reserveMilli: 0 };
  };
  const leaving = (asked: Part, permille: number): Part => {
    const reserveMilli = part({ limit: asked.limit, permille }).milli;
    return { ...asked, reserveMilli, reservePermille: permille, ...(shadows.has(asked.limit) ? { shadow: true } : {}) };
  };
  const isRate = ({ limit }: Share): boolean => at(model.rates, limit).refillPeriodMs !== 0;
  const held = model.rates.map(({ capacityMilli }, limit) => capacityMilli - Number(at(model.tokensMilli, limit)));
  const refund = (share: Share): Part => {
    const { limit, milli } = part(share);
    if (isRate(share)) return { limit, milli, reserveMilli: 0 };
    if (leases !== null) return leases.end(limit) ?? { limit, milli: 0, reserveMilli: 0 };
    const given = Math.min(milli, at(held, limit));
    held[limit] = at(held, limit) - given;
    return { limit, milli: given, reserveMilli: 0 };
  };
  return {
    asks: does.asks.map((ask, index) => ask.map((share) => leaving(part(share), does.reserves?.[index] ?? 0))),
    debits: does.debits.filter(isRate).map(part),
    refunds: does.refunds.map(refund),
    ...(leases === null ? {} : { leases: does.asks.map(() => leases.nextLease()) }),
  };
}

async function mismatch(model: Model, store: ConditionalStore, nowMs: EpochMs, when: string): Promise<string | null> {
  const { baseMs, limits } = await store.read();
  for (const [limit, { rate, tokensMilli }] of limits.entries()) {
    const worth = worthOf(rate, tokensMilli, baseMs, nowMs);
    const expected = at(model.tokensMilli, limit);
    if (worth !== expected) return `limit ${limit} has ${worth}, should have ${expected} ${when}`;
  }
  return null;
}
