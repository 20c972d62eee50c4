import type { Listing, ListOptions } from '../../limiter/api/listing.js';
import { checkWhole } from '../../core/limit.js';
import { parseWhole } from './parse.js';
import type { Session } from '../run/session.js';
import type { Style } from '../terminal/terminal.js';
import type { ListShape } from '../run/common-shapes.js';

/** The values of `--limit`, `--after` and `--all`. */
export interface PagingOptions {
  readonly limit?: string;
  readonly after?: string;
  readonly all?: boolean;
}

const LARGEST_PAGE = 1_000;

/** Reads one page, or with `--all` every item after `--after`. */
export async function readList<T, Shape>(
  session: Session,
  options: PagingOptions,
  list: (page: ListOptions) => Listing<T>,
  shape: (item: T) => Shape,
): Promise<ListShape<Shape>> {
  const limit = options.limit === undefined ? undefined : parseWhole('--limit', options.limit);
  if (limit !== undefined) checkWhole('--limit', limit, 1, LARGEST_PAGE);
  const after = options.after === undefined ? {} : { after: options.after };
  if (options.all !== true) {
    const page = await list({ ...after, ...(limit === undefined ? {} : { limit }) });
    return { items: page.items.map((item) => shape(item)), next: page.next };
  }
  const items: Shape[] = [];
  for await (const item of list({ ...after, limit: limit ?? LARGEST_PAGE })) {
    items.push(shape(item));
    session.progress(`read ${items.length} so far`);
  }
  return { items, next: null };
}

/** The line below a page that is not the last. */
export function moreLine({ next }: ListShape<unknown>, style: Style): string {
  return next === null ? '' : `\n${style.dim(`There are more: use --all, or --after ${quote(next)}`)}`;
}

/** Quotes the text as one word of a shell. */
function quote(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll(`'`, `'\\''`)}'`;
}
