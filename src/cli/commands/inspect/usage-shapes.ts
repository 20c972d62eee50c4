import type { Counts, Instant } from '../../run/common-shapes.js';

/** `--json`: items of `usage list` */
export interface UsageShape {
  readonly entityId: string;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  readonly windowStart: Instant;
  readonly windowEnd: Instant;
  readonly tokens: Counts;
  readonly acquires: number;
  readonly expired: number;
}

/** `--json` of `usage summary` */
export interface UsageSummaryShape {
  /** null: all entities. */
  readonly entityId: string | null;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  readonly from: Instant | null;
  readonly to: Instant | null;
  /** Windows that have any usage. */
  readonly count: number;
  readonly total: Counts;
  readonly average: Counts;
  readonly acquires: number;
  readonly expired: number;
}

/** `--json` of `usage plot` */
export interface UsagePlotShape {
  readonly entityId: string | null;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  /** One per limit, then `acquires`; every window of the range has a point, even without usage. */
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly { readonly windowStart: Instant; readonly value: number }[];
  }[];
}

/** `--json` of `usage rebuild` */
export interface UsageRebuildShape {
  readonly entityId: string;
  readonly resource: string;
  /** What was missing, and was added to the current hour, day and month. */
  readonly added: Counts;
  readonly acquires: number;
  readonly expired: number;
}
