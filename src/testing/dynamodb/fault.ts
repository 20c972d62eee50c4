import { ValidationError } from '../../core/errors.js';
import { asHtmlPage, type BreakAnswer, withBareObject, withHalfOfBody, withoutBody } from './broken-answers.js';
import { type DynamoAnswer, type DynamoRequest, isSingleWrite, isTransaction } from './dynamo-request.js';
import {
  buildAccessDenied,
  buildServerError,
  buildThrottling,
  buildTransactionConflict,
  type Throttling,
} from './error-answers.js';
import { splitBatch } from './partial-batch.js';

/** A fault of a request. `applies` is false for requests that cannot have the fault. */
export type Fault =
  | { readonly kind: 'lose-request' | 'lose-answer'; readonly applies: Applies }
  | { readonly kind: 'hold-request' | 'hold-answer'; readonly ms: number | null; readonly applies: Applies }
  | { readonly kind: 'shift-date'; readonly ms: number; readonly applies: Applies }
  | { readonly kind: 'process-only'; readonly count: number; readonly applies: Applies }
  | { readonly kind: 'break-answer'; readonly served: boolean; readonly broken: BreakAnswer; readonly applies: Applies }
  | {
      readonly kind: 'answer';
      readonly answer: (request: DynamoRequest) => DynamoAnswer;
      readonly applies: Applies;
    };

/** A fault that decides the outcome of a request. The others only delay it or change its date, and can be combined. */
export type DecisiveFault = Exclude<Fault, { readonly kind: 'hold-request' | 'hold-answer' | 'shift-date' }>;

const ADDITIVE: readonly Fault['kind'][] = ['hold-request', 'hold-answer', 'shift-date'];

export const isDecisive = (candidate: Fault): candidate is DecisiveFault => !ADDITIVE.includes(candidate.kind);

type Applies = (request: DynamoRequest) => boolean;

const always: Applies = () => true;

/** A fault that damages an answer of the engine. */
export interface BrokenAnswer {
  /** Whether the engine serves the request before. Default: true. */
  readonly served?: boolean;
}

/** The faults that a proxy can inject. */
export const fault = {
  /** The engine never gets the request; the connection breaks. */
  loseRequest: (): Fault => ({ kind: 'lose-request', applies: always }),

  /** The engine serves the request, then the connection breaks instead of an answer. */
  loseAnswer: (): Fault => ({ kind: 'lose-answer', applies: always }),

  /** The request reaches the engine late: after `ms`, or when the injected fault is released. */
  holdRequest: (ms?: number): Fault => ({ kind: 'hold-request', ms: milliseconds(ms), applies: always }),

  /** The answer is late: after `ms`, or when the injected fault is released. */
  holdAnswer: (ms?: number): Fault => ({ kind: 'hold-answer', ms: milliseconds(ms), applies: always }),

  /** Shifts the `Date` header of answers by `ms`; positive values are in the future. Shifts add up. */
  shiftDate(ms: number): Fault {
    if (!Number.isFinite(ms)) throw new ValidationError('ms', 'a number of milliseconds', ms);
    return { kind: 'shift-date', ms, applies: always };
  },

  /** The engine serves the first `count` keys or writes of a batch; the others are returned as unprocessed. */
  processOnly(count: number): Fault {
    if (!Number.isSafeInteger(count) || count < 1)
      throw new ValidationError('count', 'a whole number from 1 up', count);
    return { kind: 'process-only', count, applies: (request) => splitBatch(request, count) !== null };
  },

  /** A throttling error of DynamoDB. Default: for the key range of a hot key, named in the answer. */
  throttle: (throttling?: Throttling): Fault => answer((request) => buildThrottling(request, throttling)),

  /** InternalServerError or ServiceUnavailable; the engine does not get the request. */
  serverError: (status: 500 | 503 = 500): Fault => answer(() => buildServerError(status)),

  /** Another transaction holds the item of a single write, or these items of a transaction. */
  transactionConflict: (items?: readonly number[]): Fault =>
    answer(
      (request) => buildTransactionConflict(request, items),
      (request) => isSingleWrite(request) || isTransaction(request),
    ),

  /** The caller does not have the permission. */
  accessDenied: (): Fault => answer(buildAccessDenied),

  /** The answer has the engine's status and no body. */
  emptyAnswer: (options?: BrokenAnswer): Fault => breakAnswer(withoutBody, options),

  /** The answer has the engine's status and the body `{}`. */
  bareAnswer: (options?: BrokenAnswer): Fault => breakAnswer(withBareObject, options),

  /** The answer has only the first half of its body. */
  truncatedAnswer: (): Fault => breakAnswer(withHalfOfBody),

  /** The answer is replaced by an HTML page, as from a proxy. */
  htmlAnswer(status: number, options?: BrokenAnswer): Fault {
    if (!Number.isSafeInteger(status) || status < 200 || status > 599) {
      throw new ValidationError('status', 'a whole number from 200 to 599', status);
    }
    return breakAnswer(asHtmlPage(status), options);
  },

  /** Any other answer; the engine does not get the request. */
  answer,
} as const;

function answer(build: (request: DynamoRequest) => DynamoAnswer, applies: Applies = always): Fault {
  return { kind: 'answer', answer: build, applies };
}

function breakAnswer(broken: BreakAnswer, { served = true }: BrokenAnswer = {}): Fault {
  return { kind: 'break-answer', served, broken, applies: always };
}

function milliseconds(ms: number | undefined): number | null {
  if (ms === undefined) return null;
  if (!Number.isFinite(ms) || ms < 0) throw new ValidationError('ms', 'a number of milliseconds from 0 up', ms);
  return ms;
}
