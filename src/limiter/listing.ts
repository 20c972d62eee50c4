import type { Page, PageRequest } from '../backend.js';
import { ValidationError } from '../core/errors.js';
import { checkWhole } from '../core/limit.js';

export interface ListOptions {
  /** Items of one page: 1 to 1 000, 100 unless given. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/** A page when awaited, every item of all pages when iterated with `for await`. */
export type Listing<T> = Promise<Page<T>> & AsyncIterable<T>;

export function listing<T>(options: ListOptions, fetch: (page: PageRequest) => Promise<Page<T>>): Listing<T> {
  const first = (async () => {
    if (typeof options !== 'object' || options === null) throw new ValidationError('query', 'an object', options);
    checkWhole('limit', options.limit ?? DEFAULT_LIMIT, 1, 1_000);
    if (options.after !== undefined && typeof options.after !== 'string') {
      throw new ValidationError('after', 'the `next` of a page', options.after);
    }
    return fetch({ limit: options.limit ?? DEFAULT_LIMIT, after: options.after ?? null });
  })();
  return Object.assign(first, {
    async *[Symbol.asyncIterator](): AsyncGenerator<T> {
      for (let page = await first; ;) {
        yield* page.items;
        if (page.next === null) return;
        // A store that answers at once would otherwise keep everybody else waiting until the last page.
        await new Promise((resolve) => setImmediate(resolve));
        page = await fetch({ limit: options.limit ?? DEFAULT_LIMIT, after: page.next });
      }
    },
  });
}

const DEFAULT_LIMIT = 100;
