import { type Clock, completeClock, systemClock } from '../../../clock.js';
import { ValidationError } from '../../../core/errors.js';
import { checkKnownFields } from '../../../core/known-fields.js';
import { checkWhole } from '../../../core/limit.js';
import { warnOfError } from '../../../limiter/warn-of-error.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { LlmCall } from '../request/llm-call.js';
import type { CountTokens, OutputEstimate } from './estimator.js';
import { costsByKind, type OnFailure } from './failure.js';
import { checkMeasures, type Measures, needsPrice } from './measures.js';
import { nameOfText } from './name-of-text.js';
import { checkPrices, type Prices } from './prices.js';

/** A refusal of the rate of calls by a provider. */
export interface ProviderThrottle {
  readonly model: string;
  /** The entity and the resource that were paused. */
  readonly entityId: string;
  readonly resource: string;
  /** What is used up, in the provider's words, such as `tokens`; null: it does not say. */
  readonly dimension: string | null;
  /** How long the bucket is paused. */
  readonly pauseMs: number;
  /** Whether the provider stated the wait. Otherwise it grows with each refusal in a row. */
  readonly isStated: boolean;
}

type OfCall = string | ((call: LlmCall) => string);

/** Options of `limitFetch` and `limitModel`. */
export interface LlmOptions {
  /** The limiter that the calls ask. */
  readonly limiter: Pick<RateLimiter, 'run' | 'pause'>;
  /** The entity that spends. Must not be an API key: names of entities are stored and printed. */
  readonly entityId: OfCall;
  /** What the limits are for. Default: the model. */
  readonly resource?: OfCall;
  /**
   * The entity of the upstream key, whose bucket of the resource is paused when the provider refuses the rate of calls: the
   * parent that `entityId` cascades to. Default: `entityId` itself.
   */
  readonly upstream?: OfCall;
  /** What each limit counts. Default: `{ rpm: 'calls', tpm: 'tokens' }`. */
  readonly measures?: Measures;
  /** How long a call may wait for its limits before it is denied. Default: 30,000. */
  readonly waitMs?: number;
  /** The priority class of the calls. */
  readonly priority?: string;
  /** Needed for limits that count `microdollars`. */
  readonly prices?: Prices;
  /** The output that is held before it is known. Default: `maximum`. */
  readonly output?: OutputEstimate;
  /** Counts the tokens of a prompt. Default: characters / 4, times a ratio that is learned for each resource. */
  readonly countTokens?: CountTokens;
  /**
   * What a call costs that has no complete answer. Default: nothing if the provider refused or never got it, else the
   * most that it can have counted.
   */
  readonly onThrow?: OnFailure;
  /**
   * An answer whose caller reads nothing for this long is given up: its call costs what an aborted one does. Default:
   * 300,000.
   */
  readonly idleMs?: number;
  /**
   * The longest pause that an answer of a provider can cause. A provider that still refuses then pauses again. Default:
   * 1 day.
   */
  readonly maxPauseMs?: number;
  /** Called when a provider refuses the rate of calls. */
  readonly onProviderThrottle?: (throttle: ProviderThrottle) => void;
  /** Called with failures that no caller awaits. Default: a process warning. */
  readonly onError?: (error: unknown, where: string) => void;
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock;
}

export interface ResolvedLlmOptions extends Required<
  Omit<LlmOptions, 'clock' | 'priority' | 'countTokens' | 'prices'>
> {
  readonly clock: Required<Clock>;
  readonly priority: string | null;
  readonly countTokens: CountTokens | null;
  readonly prices: Prices | null;
}

const DAY_MS = 86_400_000;

const defaults = {
  measures: { rpm: 'calls', tpm: 'tokens' },
  waitMs: 30_000,
  priority: null,
  prices: null,
  output: 'maximum',
  countTokens: null,
  onThrow: costsByKind,
  idleMs: 300_000,
  maxPauseMs: DAY_MS,
  onProviderThrottle: () => {},
  onError: warnOfError,
} as const;

const FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(defaults),
  'limiter',
  'entityId',
  'resource',
  'upstream',
  'clock',
]);

/** The checked options. `others`: the names of further options that the caller reads. */
export function resolveLlmOptions(options: LlmOptions, others: readonly string[] = []): ResolvedLlmOptions {
  checkKnownFields('options', options, new Set([...FIELDS, ...others]));
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as LlmOptions;
  const { entityId, resource = modelOf, upstream = entityId, clock = systemClock } = given;
  const resolved = { ...defaults, ...given, resource, upstream, clock: completeClock(clock) };
  checkMeasures(resolved.measures);
  if (resolved.prices !== null) checkPrices(resolved.prices);
  if (needsPrice(resolved.measures) && resolved.prices === null) {
    throw new ValidationError('prices', 'the prices of the models, for a limit that counts microdollars', null);
  }
  if (!['maximum', 'typical'].includes(resolved.output)) {
    throw new ValidationError('output', `'maximum' or 'typical'`, resolved.output);
  }
  checkWhole('waitMs', resolved.waitMs, 0, DAY_MS);
  checkWhole('idleMs', resolved.idleMs, 1, DAY_MS);
  checkWhole('maxPauseMs', resolved.maxPauseMs, 1, 366 * DAY_MS);
  return resolved;
}

/** The name that an option gives to a call. What a function takes from the request may be any text; a fixed name is checked. */
export function nameFor(option: OfCall, kind: 'entityId' | 'resource', call: LlmCall): string {
  return typeof option === 'function' ? nameOfText(kind, option(call)) : option;
}

function modelOf({ model }: LlmCall): string {
  return model;
}
