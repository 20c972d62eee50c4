import { describeTarget } from '../../core/manifest/managed.js';
import { sameField } from '../../core/manifest/managed-fields.js';
import type { ManifestPlan } from '../../limiter/manifest/manifest-api.js';
import { formatCount, printable } from '../../visualize/format.js';
import type { Style } from '../terminal.js';

type Fields = Readonly<Record<string, unknown>>;
type Change = ManifestPlan['changes'][number];

/** What differs, object by object: `plan` before it is made, `done` afterwards. */
export function renderPlan(plan: ManifestPlan, style: Style, tense: 'plan' | 'done'): string {
  const { changes, drift } = plan;
  const lines = changes.flatMap((change) => renderChange(change, style));
  const byHand = drift.flatMap(({ target, applied, live }) => [
    `  ${style.yellow(describeTarget(target))}${live === null ? ' was removed' : ''}`,
    ...(live === null ? [] : fieldLines(applied, live)),
  ]);
  const title = tense === 'plan' ? 'Manual changes since the last apply:' : 'Reverted manual changes:';
  return [lines, byHand.length === 0 ? [] : [title, ...byHand], [summaryOf(plan, tense)]]
    .filter((part) => part.length > 0)
    .map((part) => part.join('\n'))
    .join('\n\n');
}

const MARKS = { create: 'green', update: 'cyan', delete: 'red' } as const;

function renderChange({ action, target, before, after }: Change, style: Style): readonly string[] {
  const title = `${style[MARKS[action]](action)} ${describeTarget(target)}`;
  return [title, ...fieldLines(before, after)];
}

/** Fields that differ. */
function fieldLines(before: Fields | null, after: Fields | null): readonly string[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .filter((name) => !sameField(name, before?.[name], after?.[name]))
    .map((name) => {
      const [old, next] = [before?.[name], after?.[name]];
      if (before === null) return `    ${name}: ${show(next)}`;
      return after === null ? `    ${name}: ${show(old)}` : `    ${name}: ${show(old)} -> ${show(next)}`;
    });
}

function show(value: unknown): string {
  if (value === undefined || value === null) return '(none)';
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return printable(value.join(', '));
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

function summaryOf({ changes, drift, unchanged }: ManifestPlan, tense: 'plan' | 'done'): string {
  const count = (action: Change['action']): number => changes.filter((change) => change.action === action).length;
  const verbs = { plan: ['to create', 'to update', 'to delete'], done: ['created', 'updated', 'deleted'] }[tense];
  const counts = (['create', 'update', 'delete'] as const).map(
    (action, at) => `${formatCount(count(action))} ${verbs[at]}`,
  );
  const hand = drift.length === 0 ? '' : `; ${formatCount(drift.length)} changed manually`;
  const rest = `${formatCount(unchanged)} unchanged${hand}`;
  return changes.length === 0 ? `No changes: ${rest}.` : `${counts.join(', ')}, ${rest}.`;
}
