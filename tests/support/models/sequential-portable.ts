import type { Amount, ParentAmount, PortablePart } from '../../../src/core/bucket/decide.js';
import type { LevelOperation } from '../../../src/backend.js';

/** A holder as the sequential model keeps it. */
export interface ModelHolder {
  readonly expiresAtMs: number;
  readonly slots: readonly Amount[];
  readonly rates: readonly Amount[] | null;
  readonly portable?: PortablePart;
}

export type ModelOperation = LevelOperation;

interface ModelEffect {
  /** Positive amounts are taken, negative ones given back. */
  readonly due: readonly Amount[];
  readonly slotsBack: readonly Amount[];
  /** null: there is none. */
  readonly holder: ModelHolder | null;
}

export function closedState({ portable }: ModelHolder): 'committed' | 'rolled-back' | null {
  return portable === undefined || portable.state === 'open' ? null : portable.state;
}

/** What an operation of a portable lease does, as a table of totals. `ended`: the lease has ended in another way. */
export function operateModel(
  stored: ModelHolder | undefined,
  { operation, dueIfLost }: ModelOperation,
  isConsumed: (name: string) => boolean,
  nowMs: number,
): ModelEffect | 'ended' {
  if (stored === undefined) return { due: dueIfLost, slotsBack: [], holder: null };
  const same: ModelEffect = { due: [], slotsBack: [], holder: stored };
  const before: PortablePart = stored.portable ?? { state: 'open', taken: stored.rates ?? [], adjusts: [] };
  const { state, taken, adjusts, step = 0, released = false, forParents = [] } = before;
  const { kind } = operation;
  if (kind === 'adjust' && adjusts.includes(operation.id)) return same;
  if (state !== 'open') {
    if (kind === 'release' || kind === 'follow') return same;
    const wanted = kind === 'commit' ? 'committed' : kind === 'rollback' ? 'rolled-back' : null;
    return wanted === state ? same : 'ended';
  }
  if (kind === 'release' && released) return same;
  if (kind === 'follow' && operation.state === 'open' && operation.step <= step) return same;
  const totals = new Map(taken.map(({ name, milli }) => [name, BigInt(milli)]));
  const others = new Map(forParents.map((other) => [other.name, other]));
  const due: Amount[] = [];
  const setTo = (name: string, total: bigint): void => {
    if (!isConsumed(name) && kind !== 'rollback') {
      if (kind !== 'follow') others.set(name, { name, milli: Number(total), isTotal: true });
      return;
    }
    if (kind !== 'follow') others.delete(name);
    const change = total - (totals.get(name) ?? 0n);
    if (change !== 0n) due.push({ name, milli: Number(change) });
    totals.set(name, total);
  };
  const isUndone = kind === 'rollback' || (kind === 'follow' && operation.state === 'rolled-back');
  if (isUndone) for (const name of totals.keys()) setTo(name, 0n);
  else if ('totals' in operation) for (const { name, milli } of operation.totals) setTo(name, BigInt(milli));
  if (kind === 'adjust') {
    for (const { name, milli } of operation.deltas) {
      const kept = isConsumed(name) ? undefined : others.get(name)?.milli;
      const total = BigInt(kept ?? totals.get(name) ?? 0n) + BigInt(milli);
      setTo(name, total < 0n ? 0n : total);
    }
  }
  const ends = kind === 'follow' ? operation.state : (ENDS[kind] ?? 'open');
  const frees = ends !== 'open' || kind === 'release' || (kind === 'follow' && operation.released);
  const isChanged = due.length > 0 || frees || kind === 'follow' || !isSame(forParents, [...others.values()]);
  if (!isChanged && kind !== 'adjust') return same;
  const left = [...totals].filter(([, milli]) => milli !== 0n).map(([name, milli]) => ({ name, milli: Number(milli) }));
  const after = kind === 'follow' ? operation.step : isChanged ? step + 1 : step;
  const portable: PortablePart = {
    state: ends,
    taken: left,
    adjusts: kind === 'adjust' ? [...adjusts, operation.id].slice(-4) : adjusts,
    ...(after === 0 && kind !== 'follow' ? {} : { step: after }),
    ...(ends === 'open' && (released || frees) ? { released: true } : {}),
    ...(others.size === 0 ? {} : { forParents: [...others.values()] }),
  };
  const rates = ends !== 'open' || stored.rates === null ? null : left;
  const slots = frees ? [] : stored.slots;
  // The trace of an ended lease answers repeats for at least a minute.
  const expiresAtMs = ends === 'open' ? stored.expiresAtMs : Math.max(stored.expiresAtMs, nowMs + 60_000);
  return { due, slotsBack: frees ? stored.slots : [], holder: { ...stored, expiresAtMs, slots, rates, portable } };
}

const ENDS: Partial<Record<ModelOperation['operation']['kind'], PortablePart['state']>> = {
  commit: 'committed',
  rollback: 'rolled-back',
};

function isSame(a: readonly ParentAmount[], b: readonly ParentAmount[]): boolean {
  return (
    a.length === b.length && a.every(({ name, milli }) => b.some((one) => one.name === name && one.milli === milli))
  );
}
