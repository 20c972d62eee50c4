/** What was learned from the calls of one resource that stated their usage. */
export interface Learned {
  /** Tokens for each token that characters / 4 predicts. */
  readonly ratio: number;
  /** The mean output and its mean deviation, in tokens; null: no call has ended yet. */
  readonly output: { readonly mean: number; readonly deviation: number } | null;
}

export const UNLEARNED: Learned = { ratio: 1, output: null };

const MIN_RATIO = 0.25;
const MAX_RATIO = 4;
/** The weight of one call. */
const GAIN = 1 / 8;
/** Short prompts say little: the fixed tokens of a message are most of them. */
const MIN_PREDICTED = 16;
const CHARACTERS_PER_TOKEN = 4;
/** How many deviations above the mean an output is expected to stay. */
const DEVIATIONS = 3;
/** The output of a call of which nothing is known. */
const FIRST_OUTPUT = 1_000;
/** More than any model answers. One wrong count must not raise the estimates of many calls beyond that. */
const MAX_OUTPUT = 1_000_000;

/** The tokens that characters / 4 predicts, before the ratio. */
export function predictTokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

export function applyRatio(learned: Learned, predicted: number): number {
  return Math.ceil(predicted * learned.ratio);
}

/** The output that most calls stay below. */
export function typicalOutput({ output }: Learned): number {
  return output === null ? FIRST_OUTPUT : Math.ceil(output.mean + DEVIATIONS * output.deviation);
}

export function averageOutput({ output }: Learned): number {
  return output === null ? FIRST_OUTPUT : Math.ceil(output.mean);
}

export function learn(learned: Learned, call: { predicted: number | null; input: number; output: number }): Learned {
  return { ratio: learnRatio(learned.ratio, call), output: learnOutput(learned.output, call.output) };
}

function learnRatio(ratio: number, { predicted, input }: { predicted: number | null; input: number }): number {
  if (predicted === null || predicted < MIN_PREDICTED) return ratio;
  const seen = Math.min(MAX_RATIO, Math.max(MIN_RATIO, input / predicted));
  return ratio + GAIN * (seen - ratio);
}

/** The estimator of TCP's retransmission timer (RFC 6298), which follows changes of a noisy value. */
function learnOutput(before: Learned['output'], stated: number): NonNullable<Learned['output']> {
  const tokens = Math.min(MAX_OUTPUT, stated);
  if (before === null) return { mean: tokens, deviation: tokens / 2 };
  const deviation = before.deviation + 2 * GAIN * (Math.abs(tokens - before.mean) - before.deviation);
  return { mean: before.mean + GAIN * (tokens - before.mean), deviation };
}
