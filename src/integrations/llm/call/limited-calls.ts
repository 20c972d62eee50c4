import { isHeadgateError } from '../../../core/errors.js';
import type { RateLimitExceeded } from '../../../core/rate-limit-exceeded.js';
import type { EpochMs } from '../../../core/units.js';
import type { Amounts } from '../../../limiter/acquire/request.js';
import type { SizedCall } from '../request/llm-call.js';
import type { Throttle } from '../throttle/parse-throttle.js';
import { ThrottlePauses } from '../throttle/throttle-pauses.js';
import { type CallEnd, settlementOf } from './call-end.js';
import { beginDelivery, type Recipient } from './delivery.js';
import { type Estimate, Estimator } from './estimator.js';
import { failureOfError } from './failure.js';
import { type ResolvedLlmOptions, nameFor } from './llm-options.js';
import { actualsOf, holdOf, needsPrice } from './measures.js';
import { dearestInput, type Price, priceOf } from './prices.js';
import { smallerEstimate } from './smaller-hold.js';

/** A call that was sent. */
export interface Sent<T> {
  readonly value: T;
  /** Resolves at the end of the answer. Never rejects. */
  readonly ended: Promise<CallEnd>;
  /** The refusal of the rate of calls by the provider; null: it did not refuse it. */
  readonly throttle: Throttle | null;
}

type Send<T> = () => Promise<Sent<T>>;

/**
 * What was computed for a call before it was sent. Does not contain its prompt, which may be large, because it lasts as
 * long as the answer.
 */
interface Planned {
  readonly model: string;
  readonly entityId: string;
  readonly resource: string;
  readonly upstream: string;
  readonly estimate: Estimate;
  readonly price: Price | null;
}

type EndableLease = { commit(actuals?: Amounts): Promise<void>; rollback(): Promise<void> };

/** Runs calls of models under leases: each holds its estimate, and ends with what it has cost. */
export class LimitedCalls {
  readonly #options: ResolvedLlmOptions;
  readonly #estimator: Estimator;
  readonly #pauses: ThrottlePauses;
  readonly #open = new Set<Promise<void>>();

  constructor(options: ResolvedLlmOptions) {
    this.#options = options;
    this.#estimator = new Estimator(options.output, options.countTokens);
    this.#pauses = new ThrottlePauses(options);
  }

  /**
   * Resolves with the value of `send` as soon as there is one; the lease ends with the answer. Rejects with the denial, with
   * the error of `send`, or with the reason of the signal.
   */
  run<T>(sized: SizedCall, signal: AbortSignal | null, send: Send<T>): Promise<T> {
    const planned = this.#plan(sized);
    const { promise, to } = beginDelivery<T>();
    // Only a denial, or an error of `send`: the end of the lease does not reject.
    this.#track(this.#runPlanned(planned, signal, send, to).catch((error: unknown) => to.reject(error)));
    return promise;
  }

  async #runPlanned<T>(planned: Planned, signal: AbortSignal | null, send: Send<T>, to: Recipient<T>): Promise<void> {
    const { limiter, waitMs, priority, measures } = this.#options;
    const { entityId, resource, estimate, price } = planned;
    const hold = ({ usage }: Estimate): Amounts => holdOf(measures, usage, price);
    const request = {
      entityId,
      resource,
      consume: hold(estimate),
      ...(waitMs === 0 ? {} : { wait: { timeoutMs: waitMs } }),
      ...(signal === null ? {} : { signal }),
      ...(priority === null ? {} : { priority }),
    };
    let isGranted = false;
    const work = async (lease: EndableLease): Promise<void> => {
      isGranted = true;
      await this.#underLease(planned, lease, signal, send, to);
    };
    try {
      await limiter.run(request, work, { onThrow: 'commit' });
    } catch (error) {
      // An error of `send` may be the denial of another limiter.
      const isTooLarge = !isGranted && isHeadgateError(error, 'limit.impossible');
      const smaller = isTooLarge ? smallerEstimate(error as unknown as RateLimitExceeded, estimate, hold) : null;
      if (smaller === null) throw error;
      await this.#runPlanned({ ...planned, estimate: smaller }, signal, send, to);
    }
  }

  /** Resolves when every call that was begun has ended its lease. */
  async settled(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open);
  }

  #track(running: Promise<void>): void {
    this.#open.add(running);
    void running.finally(() => this.#open.delete(running));
  }

  #plan(sized: SizedCall): Planned {
    const { entityId, resource, upstream, prices, measures } = this.#options;
    const { call } = sized;
    const spender = nameFor(entityId, 'entityId', call);
    const spentOn = nameFor(resource, 'resource', call);
    return {
      model: call.model,
      entityId: spender,
      resource: spentOn,
      upstream: nameFor(upstream, 'entityId', call),
      estimate: this.#estimator.estimate(spentOn, sized),
      price: prices === null || !needsPrice(measures) ? null : priceOf(prices, call.model),
    };
  }

  async #underLease<T>(
    planned: Planned,
    lease: EndableLease,
    signal: AbortSignal | null,
    send: Send<T>,
    to: Recipient<T>,
  ): Promise<void> {
    try {
      signal?.throwIfAborted();
    } catch (reason) {
      await this.#end(planned, lease, { kind: 'unanswered', failure: { kind: 'unreachable', status: null } });
      throw reason;
    }
    let answered: { readonly ended: Promise<CallEnd> };
    try {
      answered = await this.#send(planned, send, to);
    } catch (error) {
      await this.#end(planned, lease, { kind: 'unanswered', failure: failureOfError(error, signal) });
      throw error;
    }
    await this.#end(planned, lease, await answered.ended);
  }

  /** Apart from `#underLease`, which must not keep the answer alive while it waits for its end. */
  async #send<T>(planned: Planned, send: Send<T>, to: Recipient<T>): Promise<Pick<Sent<T>, 'ended'>> {
    const sentMs = this.#options.clock.now();
    const { value, ended, throttle } = await send();
    await this.#heed(planned, throttle, sentMs);
    to.resolve(value);
    return { ended };
  }

  /** The pause is stored before the caller can send the call again. */
  async #heed({ model, upstream, resource }: Planned, throttle: Throttle | null, sentMs: EpochMs): Promise<void> {
    const target = { entityId: upstream, resource, model };
    if (throttle === null) this.#pauses.succeed(target);
    else await this.#pauses.pause(target, throttle, sentMs);
  }

  async #end({ resource, estimate, price }: Planned, lease: EndableLease, end: CallEnd): Promise<void> {
    const { measures, onThrow, onError } = this.#options;
    try {
      const seen = end.kind === 'partial' ? this.#estimator.outputTokens(resource, end.seen.characters) : 0;
      const settlement = settlementOf(end, estimate, seen, onThrow);
      if (settlement.kind === 'rollback') await lease.rollback();
      else if (settlement.kind === 'keep') await lease.commit();
      else {
        const { usage, isInputStated } = settlement;
        const paid = price === null || isInputStated ? price : dearestInput(price);
        await lease.commit(actualsOf(measures, usage, paid));
      }
      // After the store has accepted it: what is refused is no cost.
      if (end.kind === 'stated') this.#estimator.learn(resource, estimate, end.usage);
    } catch (error) {
      onError(error, 'settling a call of a model');
    }
  }
}
