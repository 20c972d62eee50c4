import type { EpochMs } from '../core/units.js';
import type { UsageCounts, UsageWindow } from '../core/usage/usage.js';
import type { Awaitable, Call, Page, PageRequest } from './call.js';

/** Which records of usage to read. */
export interface UsageQuery {
  /** null: all entities. */
  readonly entityId: string | null;
  readonly resource: string;
  readonly window: UsageWindow;
  /** Windows that begin at or after `fromMs` and before `toMs`. */
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
}

/** What one entity consumed on one resource in one window. */
export interface UsageRecord extends UsageCounts {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly startMs: EpochMs;
}

/** The records of usage. */
export interface UsageStore {
  /** Sorted by time, then by entity. */
  query(call: Call, query: UsageQuery, page: PageRequest): Awaitable<Page<UsageRecord>>;
}
