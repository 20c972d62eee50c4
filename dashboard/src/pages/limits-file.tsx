import { useState } from 'preact/hooks';
import type { PlanView } from '../api/types.js';
import { formatValue } from '../model/format.js';
import { diffValues } from '../model/value-diff.js';
import { api } from '../state/session.js';
import { ActionResult } from '../ui/action-result.js';
import { ConfirmButton } from '../ui/confirm-button.js';
import { Area } from '../ui/field.js';
import { DiffList } from '../ui/diff-list.js';
import { List } from '../ui/list.js';
import { Panel } from '../ui/panel.js';
import { useAction } from '../ui/use-action.js';

const EXAMPLE = `namespace: default
resources:
  gpt-4: { limits: ["tpm:10000/min"] }`;

/** A limits file: paste it, see its plan, apply it. The server parses it, as `headgate limits` does. */
export function LimitsFile({ onChanged }: { readonly onChanged: () => void }) {
  const [text, setText] = useState('');
  const [planned, setPlanned] = useState<{ readonly text: string; readonly plan: PlanView } | null>(null);
  const action = useAction();
  const plan = planned?.text === text ? planned.plan : null;
  const load = (): void =>
    action.run(async () => {
      setText(JSON.stringify(await api.value.get('/v1/limits/export'), null, 2));
      return 'This is the limits file of the namespace as it is now.';
    });
  const planOf = (): Promise<PlanView> => api.value.send('POST', '/v1/limits/plan', { body: { text } });
  const makePlan = (): void =>
    action.run(async () => {
      const made = await planOf();
      setPlanned({ text, plan: made });
      return made.changes.length === 0 ? 'No changes.' : `${countText(made)}. Nothing was written yet.`;
    });
  const apply = (): void =>
    action.run(async () => {
      const current = await planOf();
      if (JSON.stringify(current) !== JSON.stringify(plan)) {
        setPlanned({ text, plan: current });
        throw new Error('The store was changed meanwhile. Nothing was written: read the changes again.');
      }
      const made = await api.value.send<PlanView>('POST', '/v1/limits/apply', { body: { text } });
      setPlanned(null);
      onChanged();
      return `${countText(made)} made.`;
    });
  return (
    <Panel title="Limits file">
      <Area
        label="Content as YAML or JSON"
        rows={10}
        value={text}
        onInput={(typed) => {
          setText(typed);
          action.clear();
        }}
        placeholder={EXAMPLE}
      />
      <div class="buttons">
        {text.trim() === '' ? (
          <button type="button" onClick={load} disabled={action.isRunning}>
            Load from the store
          </button>
        ) : (
          <ConfirmButton label="Load from the store" question="Replace the text" about="limits file" onConfirm={load} />
        )}
        <button type="button" onClick={makePlan} disabled={action.isRunning || text.trim() === ''}>
          Plan
        </button>
        <button
          type="button"
          class="primary"
          onClick={apply}
          disabled={action.isRunning || plan === null || plan.changes.length === 0}
        >
          Apply the plan
        </button>
      </div>
      <ActionResult action={action} />
      {plan === null ? null : <PlanChanges plan={plan} />}
    </Panel>
  );
}

function countText({ changes }: PlanView): string {
  return changes.length === 1 ? '1 change' : `${changes.length} changes`;
}

function PlanChanges({ plan: { changes, drift, unchanged } }: { readonly plan: PlanView }) {
  return (
    <>
      {drift.length === 0 ? null : (
        <p class="notice warn">Objects changed by hand since the file was applied last: {drift.length}</p>
      )}
      <List
        isOrdered
        class="audit"
        items={changes.map(({ action, target, before, after }) => (
          <li key={JSON.stringify(target)}>
            <p class="audit-head">
              <strong>{action}</strong> <span class="id">{Object.values(target).map(formatValue).join(' ')}</span>
            </p>
            <DiffList lines={diffValues(before, after).filter(({ kind }) => kind !== 'same')} />
          </li>
        ))}
      />
      <p class="muted">Objects of the file that need no change: {unchanged}</p>
    </>
  );
}
