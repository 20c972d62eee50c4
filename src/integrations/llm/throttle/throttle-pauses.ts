import type { EpochMs } from '../../../core/units.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { ResolvedLlmOptions } from '../call/llm-options.js';
import type { Throttle } from './parse-throttle.js';

/** A bucket that a provider's refusal pauses. */
interface Target {
  readonly entityId: string;
  readonly resource: string;
  readonly model: string;
}

interface Known {
  /** How many refusals without a stated wait came in a row. */
  readonly unstated: number;
  readonly pausedAtMs: EpochMs;
  readonly untilMs: EpochMs;
}

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;
/** Beyond this many buckets, the one that was paused first is forgotten. */
const MAX_KNOWN = 1_000;

type Options = Pick<ResolvedLlmOptions, 'limiter' | 'clock' | 'maxPauseMs' | 'onProviderThrottle' | 'onError'>;

/** Pauses the bucket of an upstream key when its provider refuses the rate of calls, for all processes. */
export class ThrottlePauses {
  readonly #options: Options;
  readonly #known = new Map<string, Known>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Resolves when the store has the pause, or has failed. `sentMs`: when the refused call was sent. */
  async pause(target: Target, { waitMs, dimension }: Throttle, sentMs: EpochMs): Promise<void> {
    const { limiter, clock, maxPauseMs, onProviderThrottle, onError } = this.#options;
    const { entityId, resource, model } = target;
    const key = `${resource} ${entityId}`;
    const known = this.#known.get(key);
    const wasUnderWay = known !== undefined && sentMs <= known.pausedAtMs;
    const unstated = waitMs === null ? refusalsInRow(known, wasUnderWay) : 0;
    const pauseMs = Math.min(maxPauseMs, waitMs ?? backOffMs(unstated));
    const nowMs = clock.now();
    const untilMs = nowMs + pauseMs;
    // Internal to the package, so that the type of the option does not name it.
    (limiter as Partial<Pick<RateLimiter, 'noteThrottle'>>).noteThrottle?.({
      entityId,
      resource,
      dimension,
      retryAfterMs: waitMs,
    });
    try {
      onProviderThrottle({ model, entityId, resource, dimension, pauseMs, isStated: waitMs !== null });
    } catch (error) {
      onError(error, 'onProviderThrottle');
    }
    // Of calls that were under way when the bucket was paused, only a later end is news. A call that was sent afterwards
    // shows that the pause was ended by hand.
    if (wasUnderWay && (untilMs <= known.untilMs || (waitMs === null && nowMs < known.untilMs))) return;
    this.#note(key, { unstated, pausedAtMs: nowMs, untilMs });
    const reason = dimension === null ? 'provider 429' : `provider 429: ${dimension}`;
    try {
      await limiter.pause({ entityId, resource, forMs: pauseMs, reason });
    } catch (error) {
      this.#known.delete(key);
      onError(error, 'pausing after a 429 of the provider');
    }
  }

  /** The provider has answered a call: the next refusal without a stated wait begins with the shortest one. */
  succeed({ entityId, resource }: Omit<Target, 'model'>): void {
    const key = `${resource} ${entityId}`;
    const known = this.#known.get(key);
    if (known !== undefined && known.unstated > 0) this.#known.set(key, { ...known, unstated: 0 });
  }

  #note(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    if (this.#known.size <= MAX_KNOWN) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}

/** Calls that were under way together are refused for the same reason: they count once. */
function refusalsInRow(known: Known | undefined, wasUnderWay: boolean): number {
  const before = known?.unstated ?? 0;
  return wasUnderWay ? Math.max(1, before) : before + 1;
}

function backOffMs(refusals: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(10, refusals - 1));
}
