import type { Awaitable, Call, ManagedMark, Page, PageRequest } from './call.js';

/** The mark of one object that a limits file owns. */
export interface ManagedRecord {
  readonly key: string;
  /** The value of the last mark with that key; never null. */
  readonly value: unknown;
}

/** What declarative files own. A change writes its mark itself; `mark` writes one where there is nothing to change. */
export interface ManagedStore {
  /** Every mark, in the order of the keys. */
  list(call: Call, page: PageRequest): Awaitable<Page<ManagedRecord>>;
  /** The mark of one object; undefined if there is none. */
  read(call: Call, key: string): Awaitable<ManagedRecord | undefined>;
  /** Writes one mark, without another change. */
  mark(call: Call, mark: ManagedMark): Awaitable<void>;
}
