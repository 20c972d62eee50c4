import type { LimitView } from '../api/types.js';

/** Whether a lease holds what it takes of the limit. A switch without a default: a new kind does not compile. */
export function holdsSlots({ kind }: Pick<LimitView, 'kind'>): boolean {
  switch (kind) {
    case 'concurrent':
      return true;
    case 'rate':
    case 'unlimited':
      return false;
  }
}
