interface KeyedPage {
  readonly limit: number;
  readonly after: string | null;
  /** The largest key first. */
  readonly isDescending?: boolean;
}

/** One page of items in the order of their keys, starting after the last key of the previous page. */
export function pageOf<T>(
  items: Iterable<T>,
  { limit, after, isDescending = false }: KeyedPage,
  keyOf: (item: T) => string,
): { readonly items: readonly T[]; readonly next: string | null } {
  const keyed: { readonly key: string; readonly item: T }[] = [];
  for (const item of items) {
    const key = keyOf(item);
    if (after === null || (isDescending ? key < after : key > after)) keyed.push({ key, item });
  }
  const sorted = keyed.toSorted((a, b) => (a.key < b.key === isDescending ? 1 : -1));
  const taken = sorted.slice(0, limit);
  const next = sorted.length > limit ? (taken.at(-1)?.key ?? null) : null;
  return { items: taken.map(({ item }) => item), next };
}

/** The cursor of a list inside a list. No name contains a space. */
export function buildTwoPartCursor(first: string, second: string): string {
  return `${first} ${second}`;
}

export function parseTwoPartCursor(cursor: string): { readonly first: string; readonly second: string } {
  const cut = cursor.indexOf(' ');
  return cut < 0 ? { first: cursor, second: '' } : { first: cursor.slice(0, cut), second: cursor.slice(cut + 1) };
}
