/** The field `date` has whole seconds, and an answer takes a while. Smaller differences are no wrong clock. */
const SMALLEST_MS = 5_000;

/** How far the clock of the server is ahead of the browser's; 0: about the same, or not known. */
export function aheadBy(date: string | null, nowMs: number): number {
  const aheadMs = Date.parse(date ?? '') - nowMs;
  return Math.abs(aheadMs) >= SMALLEST_MS ? aheadMs : 0;
}

let aheadMs = 0;

export function noteServerTime({ headers }: Response): void {
  aheadMs = aheadBy(headers.get('date'), Date.now());
}

/**
 * The time by the clock of the server. Instants of the store are compared with it, because a browser's clock may be
 * wrong by hours.
 */
export function serverNow(): number {
  return Date.now() + aheadMs;
}
