/** What a limit does with an ask: a rate refills, slots are given back, an unlimited one only counts. */
export type LimitKind = 'rate' | 'concurrent' | 'unlimited';

// Each question is a switch without a default: a new kind does not compile until every question has an answer for it.

/** Whether what is taken is used up and counts as consumption. Slots are given back instead. */
export function isConsumed(kind: LimitKind): boolean {
  switch (kind) {
    case 'rate':
    case 'unlimited':
      return true;
    case 'concurrent':
      return false;
  }
}

/** Whether the balance grows with time, up to the capacity. Slots return only when a lease gives them back. */
export function refills(kind: LimitKind): boolean {
  switch (kind) {
    case 'rate':
      return true;
    case 'concurrent':
    case 'unlimited':
      return false;
  }
}

/** Whether a lease holds what it takes, until it ends or expires. */
export function holdsSlots(kind: LimitKind): boolean {
  switch (kind) {
    case 'concurrent':
      return true;
    case 'rate':
    case 'unlimited':
      return false;
  }
}

/** Whether there is a balance, which an ask can exceed. */
export function hasBalance(kind: LimitKind): boolean {
  switch (kind) {
    case 'rate':
    case 'concurrent':
      return true;
    case 'unlimited':
      return false;
  }
}

/** Whether a limit that changes its kind keeps its account. Slots are not tokens; the counter of a lifted rate continues. */
export function sharesAccount(before: LimitKind, after: LimitKind): boolean {
  return isConsumed(before) === isConsumed(after);
}
