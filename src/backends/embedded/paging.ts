import type { Page, PageRequest } from '../../backend.js';
import { pageOf } from '../../core/paging.js';

/** A page with everything. */
export const EVERYTHING: PageRequest = { limit: 1e9, after: null };

/** Merges a page of stored items with other items in the same order. */
export function mergePage<T>(
  stored: Page<T>,
  others: readonly T[],
  page: PageRequest,
  keyOf: (item: T) => string,
  combine: (stored: T, other: T) => T,
): Page<T> {
  const merged = new Map(stored.items.map((item) => [keyOf(item), item]));
  for (const other of others) {
    const key = keyOf(other);
    const item = merged.get(key);
    merged.set(key, item === undefined ? other : combine(item, other));
  }
  const lastStored = stored.items.at(-1);
  // Items after the last stored one belong to a later page, where their stored part is known.
  const known = [...merged.values()].filter(
    (item) => stored.next === null || lastStored === undefined || keyOf(item) <= keyOf(lastStored),
  );
  const result = pageOf(known, page, keyOf);
  return result.next === null && stored.next !== null && lastStored !== undefined
    ? { items: result.items, next: keyOf(lastStored) }
    : result;
}
