import { ValidationError } from '../../../core/errors.js';
import type { LlmCall, SizedCall } from '../request/llm-call.js';
import { NO_USAGE, type Usage } from '../usage/usage.js';
import { applyRatio, averageOutput, learn, type Learned, predictTokens, typicalOutput, UNLEARNED } from './learning.js';

/** Counts the tokens of a text, as the tokenizer of the model does. */
export type CountTokens = (text: string, call: LlmCall) => number;

/** `maximum`: the most that the request allows, if it says so. `typical`: learned from the calls of the resource. */
export type OutputEstimate = 'maximum' | 'typical';

export interface Estimate {
  readonly usage: Usage;
  /**
   * The most that the provider can count: of the input, if the request contains all of it as text; of the output, if the
   * request states a maximum. Otherwise the estimate.
   */
  readonly bound: Usage;
  /** The average output of such calls, where `usage` has a greater one that was learned; null: the request states it. */
  readonly averageOutput: number | null;
  /** Whether the request states a maximum of its output. */
  readonly isOutputBounded: boolean;
  /** What characters / 4 predict for the input; null: a tokenizer has counted it. */
  readonly predicted: number | null;
}

/** Beyond this many resources, the one that was used first is forgotten. */
const MAX_RESOURCES = 1_000;

/** Estimates the usage of calls, and learns from what they have used. */
export class Estimator {
  readonly #output: OutputEstimate;
  readonly #countTokens: CountTokens | null;
  readonly #learned = new Map<string, Learned>();

  constructor(output: OutputEstimate, countTokens: CountTokens | null) {
    this.#output = output;
    this.#countTokens = countTokens;
  }

  estimate(resource: string, { call, prompt, maxInputTokens, maxOutputTokens }: SizedCall): Estimate {
    const learned = this.#of(resource);
    const predicted = this.#countTokens === null ? predictTokens(prompt.characters) : null;
    const text = predicted === null ? this.#count(prompt.texts.join('\n'), call) : applyRatio(learned, predicted);
    const typical = typicalOutput(learned);
    const isLearned = this.#output === 'typical' || maxOutputTokens === null;
    const most = maxOutputTokens ?? Number.POSITIVE_INFINITY;
    const outputTokens = isLearned ? Math.min(typical, most) : most;
    const inputTokens = text + prompt.tokens;
    // The count of a tokenizer is not doubted.
    const boundOfInput = predicted === null ? inputTokens : Math.max(inputTokens, maxInputTokens);
    return {
      usage: { ...NO_USAGE, inputTokens, outputTokens },
      bound: { ...NO_USAGE, inputTokens: boundOfInput, outputTokens: maxOutputTokens ?? outputTokens },
      averageOutput: isLearned ? Math.min(averageOutput(learned), most) : null,
      isOutputBounded: maxOutputTokens !== null,
      predicted,
    };
  }

  /** The tokens of output that was seen, of a call that does not state its usage. */
  outputTokens(resource: string, characters: number): number {
    return applyRatio(this.#of(resource), predictTokens(characters));
  }

  learn(resource: string, { predicted }: Estimate, usage: Usage): void {
    const next = learn(this.#of(resource), { predicted, input: usage.inputTokens, output: usage.outputTokens });
    this.#learned.delete(resource);
    this.#learned.set(resource, next);
    if (this.#learned.size <= MAX_RESOURCES) return;
    for (const oldest of this.#learned.keys()) {
      this.#learned.delete(oldest);
      return;
    }
  }

  #of(resource: string): Learned {
    return this.#learned.get(resource) ?? UNLEARNED;
  }

  #count(text: string, call: LlmCall): number {
    const tokens = this.#countTokens?.(text, call);
    if (typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0) return tokens;
    throw new ValidationError('countTokens', 'a function that returns a whole number of tokens', tokens);
  }
}
