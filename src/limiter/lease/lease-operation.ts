import type { Amount } from '../../core/bucket/decide.js';
import type { ClosedState } from '../../core/bucket/portable.js';

/** What a caller does with its lease. Amounts are in millitokens. */
export type LeaseOperation = Correction | Ending | { readonly kind: 'release' };

/** Changes the amounts of a lease, which stays open. */
export type Correction =
  | { readonly kind: 'settle'; readonly totals: readonly Amount[] }
  /** `id`: a repeated adjust of a portable lease with the same id counts once. null: every call counts. */
  | { readonly kind: 'adjust'; readonly deltas: readonly Amount[]; readonly id: string | null };

export type Ending =
  | { readonly kind: 'commit'; readonly totals: readonly Amount[] }
  | { readonly kind: 'rollback' }
  /** Keeps the named limits, and gives the others back. */
  | { readonly kind: 'keep'; readonly names: ReadonlySet<string> };

/** `lost`: a holder no longer exists. A state: another process has ended the lease. */
export type Performed = 'done' | 'lost' | ClosedState;
