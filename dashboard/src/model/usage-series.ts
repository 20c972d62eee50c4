import type { UsageView } from '../api/types.js';

/** One line of the chart: what an entity, or all entities together, used of one limit in each window. */
export interface UsageSeries {
  readonly label: string;
  readonly values: readonly number[];
}

export interface UsageChart {
  readonly starts: readonly string[];
  readonly series: readonly UsageSeries[];
}

/** The value of a window: of one limit, or the number of acquires (empty name). */
export function valueOf({ tokens, acquires }: UsageView, limit: string): number {
  if (limit === '') return acquires;
  return (Object.hasOwn(tokens, limit) ? tokens[limit] : undefined) ?? 0;
}

export function limitsIn(usage: readonly UsageView[]): string[] {
  return [...new Set(usage.flatMap(({ tokens }) => Object.keys(tokens)))].toSorted();
}

/** Sums the usage of each group by window. Windows that have no record at all are left out. */
export function chartOf(
  groups: readonly { readonly label: string; readonly usage: readonly UsageView[] }[],
  limit: string,
): UsageChart {
  const starts = [...new Set(groups.flatMap(({ usage }) => usage.map((one) => one.windowStart)))].toSorted();
  const series = groups.map(({ label, usage }) => {
    const sums = new Map<string, number>();
    for (const one of usage) sums.set(one.windowStart, (sums.get(one.windowStart) ?? 0) + valueOf(one, limit));
    return { label, values: starts.map((start) => sums.get(start) ?? 0) };
  });
  return { starts, series };
}

/** The total of each entity, the largest first. */
export function totalsByEntity(
  usage: readonly UsageView[],
  limit: string,
): { readonly entityId: string; readonly total: number }[] {
  const totals = new Map<string, number>();
  for (const one of usage) totals.set(one.entityId, (totals.get(one.entityId) ?? 0) + valueOf(one, limit));
  return [...totals]
    .map(([entityId, total]) => ({ entityId, total }))
    .toSorted((a, b) => b.total - a.total || (a.entityId < b.entityId ? -1 : 1));
}
