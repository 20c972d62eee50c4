/** Of each id the levels that it and its parents make: 1 without a parent, Infinity if the way up never ends. */
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
    // Whoever leads into a circle never comes to an end either.
    let depth = next === null ? 0 : onWay.has(next) ? Number.POSITIVE_INFINITY : (depths.get(next) ?? 0);
    for (const passed of way.toReversed()) {
      depth += 1;
      depths.set(passed, depth);
    }
  }
  return depths;
}
