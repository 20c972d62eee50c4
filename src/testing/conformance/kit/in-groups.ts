import { hasExpired } from '../../../core/bucket/give-back.js';
import assert from 'node:assert/strict';
import type { Backend, Call, ConsumeOutcome, ConsumeRequest, LevelAsk, LevelChange } from '../../../backend.js';
import { adjust, charge, consume, extend } from '../../../backends/embedded/consume.js';
import { MemorySpace } from '../../../backends/embedded/memory-space.js';
import { askOf } from '../../../core/bucket/decide.js';
import { changesBy } from '../../../core/bucket/holder-rules.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { isConsumed } from '../../../core/limit-kind.js';
import { shareOfCapacity } from '../../../core/limit-options.js';
import { MAX_AMOUNT, MILLI } from '../../../core/units.js';

/** An id that no lease has: calls for it change nothing. */
const NO_LEASE = buildLeaseId(0, 0);

/**
 * Wraps the store so that each ask is sent together with other asks of its buckets, while a call of those buckets is in
 * flight: a store that groups calls then answers them together. All answers must equal those of the memory store to the
 * same asks one after another. The ask itself comes first, so that the others do not change its answer. What the others
 * were granted is given back before the next call.
 */
export function askInGroups(store: Backend): Backend {
  const spaces = new Map<string, MemorySpace>();
  const memoryOf = ({ namespaceId }: Call): MemorySpace => {
    const space = spaces.get(namespaceId) ?? new MemorySpace();
    spaces.set(namespaceId, space);
    return space;
  };
  const inTurn = oneAfterAnother();

  const calls: Pick<Backend, 'consume' | 'adjust' | 'charge' | 'extend'> = {
    consume: async (call, request) =>
      inTurn(async () => {
        const memory = memoryOf(call);
        const first = consume(memory, request, call.nowMs);
        const companions = companionsOf(request, hasExpiredHolders(memory, request, call.nowMs));
        const expected = [first, ...companions.map((ask) => consume(memory, ask, call.nowMs))];
        const asks = [request, ...companions];
        const answers = await askTogether(store, call, asks);
        // After a refusal of a parent, the other asks may see tokens of lower levels that the ask has not given back yet.
        const compared = request.levels.length > 1 ? 1 : asks.length;
        const told = (outcomes: readonly ConsumeOutcome[]): unknown[] => outcomes.slice(0, compared).map(tellingOf);
        assert.deepEqual(told(answers), told(expected), 'a group answers as one ask after another');
        for (const [at, { leaseId, levels }] of companions.entries()) {
          const undone = { leaseId: leaseId ?? NO_LEASE, levels: undoingOf(levels, answers[at + 1]) };
          adjust(memory, undone, call.nowMs);
          await store.adjust(call, undone);
        }
        return answers[0] ?? assert.fail('no answer');
      }),
    adjust: async (call, request) =>
      inTurn(async () => {
        adjust(memoryOf(call), request, call.nowMs);
        return store.adjust(call, request);
      }),
    charge: async (call, request) =>
      inTurn(async () => {
        charge(memoryOf(call), request, call.nowMs);
        return store.charge(call, request);
      }),
    extend: async (call, request) =>
      inTurn(async () => {
        extend(memoryOf(call), request, call.nowMs);
        return store.extend(call, request);
      }),
  };
  return new Proxy(store, {
    get: (target, key) => {
      const value: unknown = Reflect.get(calls, key) ?? Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Sends all asks at once while a call of the same buckets is in flight. */
async function askTogether(
  store: Backend,
  call: Call,
  asks: readonly ConsumeRequest[],
): Promise<readonly ConsumeOutcome[]> {
  const buckets = asks[0]?.levels ?? [];
  const underWay = buckets.map(async (bucket) =>
    store.extend(call, { leaseId: NO_LEASE, levels: [bucket], expiresAtMs: call.nowMs }),
  );
  const answers = asks.map(async (ask) => store.consume(withoutDenyCache(call), ask));
  const [outcomes] = await Promise.all([Promise.all(answers), Promise.all(underWay)]);
  return outcomes;
}

/** The memory store must get the calls in the order of the store under test. */
function oneAfterAnother(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return async (work) => {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return turn;
  };
}

/** A denial from the deny cache does not wait for the asks before it, so its answer would be that of an earlier ask. */
function withoutDenyCache(call: Call): Call {
  return call.tuning === undefined ? call : { ...call, tuning: { ...call.tuning, denyCacheMs: 0 } };
}

/** A companion ask that has too few slots would reclaim them, although the case may still check for them. */
function hasExpiredHolders(memory: MemorySpace, { levels }: ConsumeRequest, nowMs: number): boolean {
  return levels.some(({ entityId, resource }) => {
    const bucket = memory.readBucket(entityId, resource);
    return bucket !== undefined && hasExpired(bucket, nowMs);
  });
}

/**
 * The same ask again, and an ask for the whole capacity besides the reserve. Companions of an ask with several levels
 * take nothing: what they take at one level before another refuses would change the answer.
 */
function companionsOf({ leaseId, levels }: ConsumeRequest, takeNothing: boolean): readonly ConsumeRequest[] {
  const [level, ...parents] = levels;
  if (level === undefined || parents.length > 0 || takeNothing) {
    const nothing = { leaseId: null, levels: levels.map((each) => askingFor(each, () => 0)) };
    return [nothing, nothing];
  }
  const most = (name: string): number => {
    const limit = level.limits.find((candidate) => candidate.name === name);
    if (limit === undefined) return 0;
    const reserve = askOf(level.asks, name)?.reserve ?? 0;
    return Math.min(MAX_AMOUNT * MILLI, limit.capacityMilli - shareOfCapacity(limit, reserve));
  };
  const whole = askingFor(level, most);
  return [
    { leaseId: leaseId === null ? null : anotherId(leaseId, 1), levels },
    { leaseId: leaseId === null ? null : anotherId(leaseId, 2), levels: [whole] },
  ];
}

type AmountOf = (name: string) => number;

/** An ask for 0 stays 0, because its holder has no slots of that limit. */
function askingFor(level: LevelAsk, amount: AmountOf): LevelAsk {
  const changed = (amounts: LevelAsk['asks']): LevelAsk['asks'] =>
    amounts.map((asked) => ({ ...asked, milli: asked.milli === 0 ? 0 : amount(asked.name) }));
  const asks = changed(level.asks);
  if (level.holder === null || asks.every(({ milli }) => milli === 0)) return { ...level, asks, holder: null };
  const { slots, rates } = level.holder;
  return {
    ...level,
    asks,
    holder: { ...level.holder, slots: changed(slots), rates: rates === null ? null : changed(rates) },
  };
}

const LAST_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

function anotherId(leaseId: string, step: number): string {
  const at = LAST_CHARACTERS.indexOf(leaseId.slice(-1)) + step;
  return leaseId.slice(0, -1) + LAST_CHARACTERS.charAt(at % LAST_CHARACTERS.length);
}

/** The parts of the outcome that a caller sees. */
function tellingOf(outcome: ConsumeOutcome): unknown {
  if (outcome.kind === 'id-taken') return outcome;
  const levels = outcome.levels.map(({ verdicts, configIsOlder }) => {
    const limits = verdicts.map(
      ({ limit, effectiveMilli, requestedMilli, waitMs }) =>
        `${limit.name}: asked for ${requestedMilli} of ${effectiveMilli}, wait ${waitMs}`,
    );
    return { limits: limits.toSorted(), configIsOlder };
  });
  if (outcome.kind === 'granted') return { kind: outcome.kind, levels };
  return { kind: outcome.kind, reason: outcome.reason, retryAfterMs: outcome.retryAfterMs, levels };
}

function undoingOf(levels: readonly LevelAsk[], outcome: ConsumeOutcome | undefined): readonly LevelChange[] {
  if (outcome?.kind !== 'granted') return [];
  return levels.map((level, at): LevelChange => {
    const verdicts = outcome.levels[at]?.verdicts ?? [];
    const rates = verdicts.filter(({ limit, waitMs }) => isConsumed(limit.kind) && waitMs === 0);
    const deltas = rates.map(({ limit, requestedMilli }) => ({ name: limit.name, milli: -requestedMilli }));
    const holder = level.holder === null ? 'none' : 'release';
    return { ...level, amounts: changesBy(deltas), holder, place: outcome.levels[at]?.place };
  });
}
