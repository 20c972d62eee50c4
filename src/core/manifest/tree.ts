/** The depth of each id: 1 without a parent, Infinity if its parents form or lead into a cycle. */
export function measureDepths(
  ids: Iterable<string>,
  parentOf: (id: string) => string | null,
): ReadonlyMap<string, number> {
  const depths = new Map<string, number>();
  for (const id of ids) {
    const way: string[] = [];
    const onWay = new Set<string>();
    let next: string | null = id;
    while (next !== null && !depths.has(next) && !onWay.has(next)) {
      way.push(next);
      onWay.add(next);
      next = parentOf(next);
    }
    // An id that leads into a cycle has an infinite depth too.
    let depth = next === null ? 0 : onWay.has(next) ? Number.POSITIVE_INFINITY : (depths.get(next) ?? 0);
    for (const passed of way.toReversed()) {
      depth += 1;
      depths.set(passed, depth);
    }
  }
  return depths;
}
