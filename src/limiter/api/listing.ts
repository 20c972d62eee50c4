import type { Page, PageRequest } from '../../backend.js';
import { ValidationError } from '../../core/errors.js';
import { checkWhole } from '../../core/limit.js';

export interface ListOptions {
  /** Items of one page: 1 to 1 000, 100 unless given. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/** A page when awaited, every item of all pages when iterated with `for await`. */
export type Listing<T> = Promise<Page<T>> & AsyncIterable<T>;

/** `fetch` reads a page of the store's records, `view` makes of each what a user sees. */
export function listing<R, T>(
  options: ListOptions,
  view: (record: R) => T,
  fetch: (page: PageRequest) => Promise<Page<R>>,
): Listing<T> {
  const read = async (page: PageRequest): Promise<Page<T>> => {
    const { items, next } = await fetch(page);
    return { items: items.map((record) => view(record)), next };
  };
  const first = (async () => {
    if (typeof options !== 'object' || options === null) throw new ValidationError('query', 'an object', options);
    checkWhole('limit', options.limit ?? DEFAULT_LIMIT, 1, 1_000);
    if (options.after !== undefined && typeof options.after !== 'string') {
      throw new ValidationError('after', 'the `next` of a page', options.after);
    }
    return read({ limit: options.limit ?? DEFAULT_LIMIT, after: options.after ?? null });
  })();
  return Object.assign(first, {
    async *[Symbol.asyncIterator](): AsyncGenerator<T> {
      for (let page = await first; ;) {
        yield* page.items;
        if (page.next === null) return;
        // A store that answers at once would otherwise keep everybody else waiting until the last page.
        await new Promise((resolve) => setImmediate(resolve));
        page = await read({ limit: options.limit ?? DEFAULT_LIMIT, after: page.next });
      }
    },
  });
}

const DEFAULT_LIMIT = 100;
