import type { Awaitable, Call, ManagedMark, Page, PageRequest } from './call.js';

export interface ManagedRecord {
  readonly key: string;
  /** The value of the last mark with that key; never null. */
  readonly value: unknown;
}

/** What declarative files own. A change writes its mark itself; `mark` writes one where there is nothing to change. */
export interface ManagedStore {
  /** Every mark, in the order of the keys. */
  list(call: Call, page: PageRequest): Awaitable<Page<ManagedRecord>>;
  read(call: Call, key: string): Awaitable<ManagedRecord | undefined>;
  mark(call: Call, mark: ManagedMark): Awaitable<void>;
}
