import type { AskResult, EffectiveView, StatusView } from '../api/types.js';
import { formatCount, formatDuration } from './format.js';
import { nameOfPaused } from './levels.js';
import { holdsSlots } from './limit-kind.js';

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

/** A decision, or with `isDryRun` the decision that an ask would get. `statuses`: of the limits that the ask names. */
export interface Tried {
  readonly isGranted: boolean;
  readonly isDryRun: boolean;
  readonly statuses: readonly StatusView[];
}

/** Explains a decision level by level: the entity first, then its parents. `consume`: what was asked. */
export function explain(
  levels: readonly LevelBefore[],
  { isGranted, isDryRun, statuses }: Tried,
  consume: Readonly<Record<string, number>>,
): ExplainedLevel[] {
  return levels.map((level) => ({
    entityId: level.entityId,
    source: sourceText(level.config.configSource),
    limits: level.config.limits.map((limit) => {
      const find = (all: readonly StatusView[]): StatusView | undefined =>
        all.find((one) => one.entityId === level.entityId && one.limit.name === limit.name);
      const status = find(statuses);
      const common = { name: limit.name, text: limit.text };
      if (status === undefined) {
        const available = find(level.statuses)?.available ?? null;
        const asked = limit.capacity === null ? (consume[limit.name] ?? null) : null;
        const verdict = asked === null ? 'not asked' : 'fits';
        return { ...common, verdict, before: available, asked, after: available, remark: '' };
      }
      const { requested, available, exceeded } = status;
      // Both numbers are of the decision: what was read earlier may be older than other calls.
      const taken = isGranted && !exceeded ? requested : 0;
      const before = available === null ? null : isDryRun ? available : available + taken;
      const after = before === null ? null : before - taken;
      const verdict = !exceeded ? 'fits' : status.shadow === true ? 'shadow' : 'refused';
      return { ...common, verdict, before, asked: requested, after, remark: remarkOf(status, before) };
    }),
  }));
}

/** The level that limits come from, as the page Limits names it. */
function sourceText(source: string | null): string {
  if (source === null) return 'no limits';
  if (source === 'entity') return 'entity and resource';
  return source === 'code' ? 'the code of the server' : source.replace('_', ' ');
}

function remarkOf(
  { exceeded, shadow, near, requested, reserved = 0, retryAfterMs, limit }: StatusView,
  before: number | null,
): string {
  if (!exceeded) return near === true ? 'near the limit' : '';
  const missing = formatCount(requested + reserved - (before ?? 0));
  const kept = reserved === 0 ? '' : ` (${formatCount(reserved)} must stay)`;
  // Slots return when a lease ends, at the latest when it expires.
  const atMost = holdsSlots(limit) ? 'at most ' : '';
  const wait =
    retryAfterMs === null ? 'more than it can ever give' : `fits in ${atMost}${formatDuration(retryAfterMs)}`;
  return `${shadow === true ? 'would be refused' : 'refused'}: ${missing} too many${kept}, ${wait}`;
}

/** The decision in one sentence. */
export function sentenceOf(result: AskResult, isDryRun: boolean): string {
  const { decidedBy = 'store' } = result;
  const decided = decidedBy === 'store' ? '' : ` (decided by ${decidedBy}, not by the store)`;
  if (result.granted) return isDryRun ? 'Would be granted. Nothing was taken.' : `Granted${decided}.`;
  const { reason, retryAfterMs, detail, paused } = result;
  if (reason === undefined) return detail;
  const wait =
    retryAfterMs === null || retryAfterMs === undefined
      ? 'Waiting does not help.'
      : `It fits in ${formatDuration(retryAfterMs)}.`;
  const by = paused === undefined ? '' : ` ${nameOfPaused(paused)} is paused: ${paused.reason}.`;
  return `${isDryRun ? 'Would be denied' : 'Denied'} (${reason})${decided}.${by} ${wait}${isDryRun ? '' : ' Nothing was taken at any level.'}`;
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
