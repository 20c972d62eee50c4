import type { EntityView, UsageView } from '../api/types.js';

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

export interface UsageGroup {
  readonly label: string;
  readonly usage: readonly UsageView[];
}

/**
 * The usage of all entities in two groups, so that neither counts a call twice: what cascades to a parent is counted for its
 * caller too. null: the parents are not known.
 */
export function apartFromParents(usage: readonly UsageView[], entities: readonly EntityView[] | null): UsageGroup[] {
  if (entities === null) return [{ label: 'all entities, at every level', usage }];
  const parents = new Set(entities.map(({ cascade, parentId }) => (cascade ? parentId : null)));
  const groups = [
    { label: 'entities without children', usage: usage.filter(({ entityId }) => !parents.has(entityId)) },
    { label: 'their parents', usage: usage.filter(({ entityId }) => parents.has(entityId)) },
  ];
  return groups.filter((group) => group.usage.length > 0);
}

/** Sums the usage of each group by window, from the first window to the last. A window that has no record was not used. */
export function chartOf(groups: readonly UsageGroup[], limit: string): UsageChart {
  const all = groups.flatMap(({ usage }) => usage);
  const starts = withGaps([...new Set(all.map((one) => one.windowStart))].toSorted(), all[0]?.window ?? 'hourly');
  const series = groups.map(({ label, usage }) => {
    const sums = new Map<string, number>();
    for (const one of usage) sums.set(one.windowStart, (sums.get(one.windowStart) ?? 0) + valueOf(one, limit));
    return { label, values: starts.map((start) => sums.get(start) ?? 0) };
  });
  return { starts, series };
}

const MOST_WINDOWS = 2_000;

/** The windows from the first to the last; where they are too many to draw, those that have records. */
function withGaps(known: readonly string[], window: UsageView['window']): readonly string[] {
  const filled: string[] = [];
  const last = known.at(-1) ?? '';
  for (let start = known[0]; start !== undefined && start <= last; start = nextStart(start, window)) {
    if (filled.push(start) > MOST_WINDOWS) return known;
  }
  return filled;
}

function nextStart(start: string, window: UsageView['window']): string {
  const at = new Date(start);
  if (window === 'hourly') at.setUTCHours(at.getUTCHours() + 1);
  else if (window === 'daily') at.setUTCDate(at.getUTCDate() + 1);
  else at.setUTCMonth(at.getUTCMonth() + 1);
  return at.toISOString();
}

/** The total of each entity or resource, the largest first. */
export function totalsBy(
  field: 'entityId' | 'resource',
  usage: readonly UsageView[],
  limit: string,
): { readonly name: string; readonly total: number }[] {
  const totals = new Map<string, number>();
  for (const one of usage) totals.set(one[field], (totals.get(one[field]) ?? 0) + valueOf(one, limit));
  return [...totals]
    .map(([name, total]) => ({ name, total }))
    .toSorted((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
}
