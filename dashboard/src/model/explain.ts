import type { AskResult, EffectiveView, StatusView } from '../api/types.js';
import { formatCount, formatDuration } from './format.js';

/** One limit of one level, as the page Try shows it. */
export interface ExplainedLimit {
  readonly name: string;
  readonly text: string;
  readonly verdict: 'fits' | 'refused' | 'shadow' | 'not asked';
  readonly asked: number | null;
  readonly before: number | null;
  readonly after: number | null;
  readonly remark: string;
}

export interface ExplainedLevel {
  readonly entityId: string;
  readonly source: string;
  readonly limits: readonly ExplainedLimit[];
}

/** What a level has before the ask. */
export interface LevelBefore {
  readonly entityId: string;
  readonly config: EffectiveView;
  readonly statuses: readonly StatusView[];
}

/**
 * Explains a decision level by level: the entity first, then its parents. `statuses`: those of the decision. `isTaken`:
 * the ask was granted and not only tried, so that the statuses have what is left after it.
 */
export function explain(
  levels: readonly LevelBefore[],
  statuses: readonly StatusView[],
  isTaken: boolean,
): ExplainedLevel[] {
  return levels.map((level) => ({
    entityId: level.entityId,
    source: level.config.configSource ?? 'no limits',
    limits: level.config.limits.map((limit) => {
      const find = (all: readonly StatusView[]): StatusView | undefined =>
        all.find((one) => one.entityId === level.entityId && one.limit.name === limit.name);
      const before = find(level.statuses)?.available ?? null;
      const status = find(statuses);
      const common = { name: limit.name, text: limit.text, before };
      if (status === undefined) return { ...common, verdict: 'not asked', asked: null, after: before, remark: '' };
      const verdict = !status.exceeded ? 'fits' : status.shadow === true ? 'shadow' : 'refused';
      const after = isTaken ? status.available : before;
      return { ...common, verdict, asked: status.requested, after, remark: remarkOf(status, before) };
    }),
  }));
}

function remarkOf(
  { exceeded, shadow, requested, reserved = 0, retryAfterMs }: StatusView,
  before: number | null,
): string {
  if (!exceeded) return '';
  const missing = formatCount(requested + reserved - (before ?? 0));
  const kept = reserved === 0 ? '' : ` (${formatCount(reserved)} must stay)`;
  const wait = retryAfterMs === null ? 'more than it can ever give' : `fits in ${formatDuration(retryAfterMs)}`;
  return `${shadow === true ? 'would be refused' : 'refused'}: ${missing} too many${kept}, ${wait}`;
}

/** The decision in one sentence. */
export function sentenceOf(result: AskResult, isDryRun: boolean): string {
  if (result.granted) return isDryRun ? 'Would be granted. Nothing was taken.' : 'Granted.';
  const { reason, retryAfterMs, detail, paused } = result;
  if (reason === undefined) return detail;
  const wait =
    retryAfterMs === null || retryAfterMs === undefined
      ? 'Waiting does not help.'
      : `It fits in ${formatDuration(retryAfterMs)}.`;
  const by = paused === undefined ? '' : ` ${paused.entityId} is paused: ${paused.reason}.`;
  return `${isDryRun ? 'Would be denied' : 'Denied'} (${reason}).${by} ${wait}${isDryRun ? '' : ' Nothing was taken at any level.'}`;
}

/** Reads `rpm=1 tpm=500`. A word without a number is refused with a sentence. */
export function parseAmounts(text: string): { readonly amounts: Record<string, number> } | { readonly error: string } {
  const amounts: Record<string, number> = {};
  for (const word of text.split(/[\s,]+/).filter((one) => one !== '')) {
    const [, name, amount] = /^([^=]+)=(\d+)$/.exec(word) ?? [];
    if (name === undefined) return { error: `Expected name=amount, such as rpm=1, got ${word}` };
    amounts[name] = Number(amount);
  }
  return { amounts };
}
