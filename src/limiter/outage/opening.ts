import type { Clock } from '../../clock.js';
import { isHeadgateError } from '../../core/errors.js';
import type { ResolvedOptions } from '../options.js';

/** The delay between two attempts to open the store. It doubles from `first` up to `last`. */
const RETRY_MS = { first: 100, last: 1_000 };

export interface Opening {
  /** One attempt, within `timeoutMs`. */
  readonly attempt: (timeoutMs: number) => Promise<unknown>;
  readonly options: Pick<ResolvedOptions, 'onUnavailable' | 'timeouts'>;
  readonly clock: Required<Clock>;
  /** Whether the limiter was closed, which ends the attempts. */
  readonly isClosed: () => boolean;
  /** Called once if the limiter starts without its store, and again if a later attempt fails for another reason. */
  readonly report: (error: unknown, where: string) => void;
}

/** The limiter started without its store. */
export interface PendingOpening {
  readonly outage: unknown;
  /** Resolves when the store is open, or when a further attempt cannot succeed. */
  readonly ended: Promise<void>;
}

/**
 * Opens a store when a process starts. A wrong schema, namespace or permission rejects at once. An outage follows the
 * policy: `block` retries for `timeouts.openMs` and then rejects; `allow` and `local` resolve after the first failure,
 * and the opening continues in the background. Null: the store is open.
 */
export async function openByPolicy(opening: Opening): Promise<PendingOpening | null> {
  const { options, attempt, report } = opening;
  if ((options.onUnavailable ?? 'block') === 'block') {
    await openWithinBudget(opening);
    return null;
  }
  try {
    await attempt(options.timeouts.callMs);
    return null;
  } catch (error) {
    if (!isOutage(error)) throw error;
    report(error, 'opening the store (calls follow onUnavailable until it answers)');
    return { outage: error, ended: openInBackground(opening) };
  }
}

async function openWithinBudget({ options, clock, attempt }: Opening): Promise<void> {
  const endMs = clock.now() + options.timeouts.openMs;
  for (let pauseMs = RETRY_MS.first; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS.last)) {
    try {
      await attempt(Math.max(1, endMs - clock.now()));
      return;
    } catch (error) {
      if (!isOutage(error) || clock.now() + pauseMs >= endMs) throw error;
    }
    await clock.sleep(pauseMs);
  }
}

async function openInBackground({ attempt, options, clock, isClosed, report }: Opening): Promise<void> {
  while (!isClosed()) {
    await clock.sleep(RETRY_MS.last, undefined, { background: true });
    if (isClosed()) return;
    try {
      await attempt(options.timeouts.callMs);
      return;
    } catch (error) {
      if (isOutage(error)) continue;
      report(error, 'opening the store');
      return;
    }
  }
}

function isOutage(error: unknown): boolean {
  return isHeadgateError(error, 'backend.unavailable');
}
