import type { Page, PageRequest } from '../../backend.js';
import { ValidationError } from '../../core/errors.js';
import { checkWhole } from '../../core/limit.js';

/** Which page of a list to read. */
export interface ListOptions {
  /** The number of items in a page: 1 to 1,000. Default: 100. */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly after?: string;
}

/** Gives one page when awaited, and every item of all pages when iterated with `for await`. */
export type Listing<T> = Promise<Page<T>> & AsyncIterable<T>;

/** `fetch` reads a page of records from the store; `view` converts a record to its public form. */
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
    if (options.after !== undefined && (typeof options.after !== 'string' || !CURSOR.test(options.after))) {
      throw new ValidationError('after', 'the `next` of a page', options.after);
    }
    return read({ limit: options.limit ?? DEFAULT_LIMIT, after: options.after ?? null });
  })();
  return Object.assign(first, {
    async *[Symbol.asyncIterator](): AsyncGenerator<T> {
      for (let page = await first; ;) {
        yield* page.items;
        if (page.next === null) return;
        // A store that answers synchronously would otherwise block the event loop until the last page.
        await new Promise((resolve) => setImmediate(resolve));
        page = await read({ limit: options.limit ?? DEFAULT_LIMIT, after: page.next });
      }
    },
  });
}

const DEFAULT_LIMIT = 100;

/** The longest has the id of an entity, a resource and the id of a lease. DynamoDB refuses sort keys of more than 1,024 bytes. */
const CURSOR = /^[ -~]{0,512}$/;
