import type { LimitView, StatusView } from '../api/types.js';
import { gaugeOf, type GaugeView } from './gauge.js';

/** One level of an entity on a resource: what is left of each of its limits. */
export interface LevelNow {
  readonly entityId: string;
  readonly gauges: readonly GaugeView[];
}

/**
 * The levels of an entity on a resource, the entity first. `configured`: the limits of a level as they are configured,
 * where the reader may know them; statuses have neither unlimited limits nor reserves.
 */
export function limitsNow(
  statuses: readonly StatusView[],
  configured: ReadonlyMap<string, readonly LimitView[]>,
): readonly LevelNow[] {
  const ids = new Set([...statuses.map(({ entityId }) => entityId), ...configured.keys()]);
  return [...ids].map((entityId) => {
    const limits = configured.get(entityId) ?? [];
    const own = statuses.filter((status) => status.entityId === entityId);
    const gauges = own.map(({ limit, available, shadow }) => {
      const known = limits.find(({ name }) => name === limit.name) ?? limit;
      return gaugeOf(limit, available, shadow === undefined ? known : { ...known, shadow });
    });
    const unlimited = limits.filter(({ capacity }) => capacity === null).map((limit) => gaugeOf(limit, null));
    return { entityId, gauges: [...gauges, ...unlimited] };
  });
}

/** The limit that is used most, of all levels; a shadow refuses nothing. undefined: nothing is used. */
export function tightestOf(levels: readonly LevelNow[]): GaugeView | undefined {
  const used = levels.flatMap(({ gauges }) => gauges).filter((one) => !one.isShadow && one.usedShare > 0);
  return used.toSorted((a, b) => b.usedShare + b.debtShare - a.usedShare - a.debtShare)[0];
}
