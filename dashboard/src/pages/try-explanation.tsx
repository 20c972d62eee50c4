import type { ExplainedLevel, ExplainedLimit } from '../model/explain.js';
import { formatCount } from '../model/format.js';
import { EntityLink } from '../ui/link.js';
import { type Column, Table } from '../ui/table.js';

const VERDICTS: Readonly<Record<ExplainedLimit['verdict'], { readonly text: string; readonly tone: string }>> = {
  fits: { text: '✓ fits', tone: 'ok' },
  refused: { text: '✗ refused', tone: 'bad' },
  shadow: { text: 'shadow', tone: '' },
  'not asked': { text: 'not asked', tone: '' },
};

const amountText = (amount: number | null): string => (amount === null ? '' : formatCount(amount));

const COLUMNS: readonly Column<ExplainedLimit>[] = [
  ['Verdict', ({ verdict }) => <span class={`tag ${VERDICTS[verdict].tone}`}>{VERDICTS[verdict].text}</span>],
  ['Limit', ({ text }) => <code>{text}</code>],
  ['Before', ({ before }) => amountText(before), 'number'],
  ['Asked', ({ asked }) => amountText(asked), 'number'],
  ['After', ({ after }) => amountText(after), 'number'],
  ['Why', ({ remark }) => remark],
];

/** Each level of the decision: the entity, then the parents that its spending counts for. */
export function Explanation({ levels }: { readonly levels: readonly ExplainedLevel[] }) {
  return (
    <>
      {levels.map(({ entityId, source, limits }) => (
        <div key={entityId} class="bucket">
          <h3>
            <EntityLink id={entityId} /> <span class="muted">limits from: {source}</span>
          </h3>
          {limits.length === 0 ? <p class="muted">This level has no limits.</p> : null}
          {limits.length === 0 ? null : (
            <Table caption={`Limits of ${entityId}`} columns={COLUMNS} rows={limits} keyOf={({ name }) => name} />
          )}
        </div>
      ))}
    </>
  );
}
