import { useState } from 'preact/hooks';
import type { AskResult, SessionView } from '../api/types.js';
import { type ExplainedLevel, parseAmounts, sentenceOf } from '../model/explain.js';
import { route, setParams } from '../state/router.js';
import { api } from '../state/session.js';
import { ActionResult } from '../ui/action-result.js';
import { Field, Form } from '../ui/field.js';
import { Panel } from '../ui/panel.js';
import { useAction } from '../ui/use-action.js';
import { useFields } from '../ui/use-fields.js';
import { Explanation } from './try-explanation.js';
import { tryAsk } from './try-ask.js';

interface Tried {
  /** The address of the ask: another one is not explained by it. */
  readonly of: string;
  readonly result: AskResult;
  readonly levels: readonly ExplainedLevel[];
  readonly isDryRun: boolean;
}

const NOTHING = { entity: '', resource: '', consume: '', priority: '' };

/** An acquire, explained level by level. */
export function TryPage({ view }: { readonly view: SessionView }) {
  const { params } = route.value;
  const { values, field, origin } = useFields({ ...NOTHING, ...params });
  const { entity, resource, consume, priority } = values;
  const [tried, setTried] = useState<Tried | null>(null);
  const action = useAction();
  const run = (isDryRun: boolean): void =>
    action.run(async () => {
      setParams({ entity, resource, consume, priority }, 'replace');
      const parsed = parseAmounts(consume);
      if ('error' in parsed) throw new Error(parsed.error);
      const ask = {
        entityId: entity,
        resource,
        consume: parsed.amounts,
        ...(priority === '' ? {} : { priority }),
      };
      setTried(null);
      setTried({
        ...(await tryAsk(api.value, ask, isDryRun, view.role === 'admin')),
        isDryRun,
        of: JSON.stringify(values),
      });
      return '';
    });
  return (
    <div class="page">
      <Form label="Try an acquire" onSubmit={() => run(true)}>
        <Field label="Entity" {...field('entity')} required />
        <Field label="Resource" {...field('resource')} required />
        <Field label="Consume" kind="long" {...field('consume')} hint="rpm=1 tpm=500" />
        <Field label="Priority" {...field('priority')} hint="Mostly empty" />
        <div class="buttons">
          <button type="submit" class="primary" disabled={action.isRunning}>
            Dry run
          </button>
          <button
            type="button"
            disabled={action.isRunning || entity === '' || resource === ''}
            onClick={() => run(false)}
          >
            Acquire
          </button>
        </div>
      </Form>
      <ActionResult action={action} />
      {tried?.of !== origin ? (
        <Panel title="Decision">
          <p class="empty">A dry run takes nothing. An acquire takes what it asks for; slots can be given back here.</p>
        </Panel>
      ) : (
        <Decision key={JSON.stringify(tried)} tried={tried} />
      )}
    </div>
  );
}

function Decision({ tried: { result, levels, isDryRun } }: { readonly tried: Tried }) {
  return (
    <Panel title="Decision">
      <p class={`decision ${result.granted ? 'ok' : 'bad'}`} role="status">
        {sentenceOf(result, isDryRun)}
      </p>
      {result.granted && result.lease.token !== null ? (
        <HeldLease id={result.lease.id} token={result.lease.token} />
      ) : null}
      <Explanation levels={levels} />
    </Panel>
  );
}

function HeldLease({ id, token }: { readonly id: string; readonly token: string }) {
  const action = useAction();
  const isOpen = action.done === null;
  const end = (how: 'commit' | 'rollback'): void =>
    action.run(async () => {
      await api.value.send('POST', `/v1/leases/${how}`, { body: { token } });
      return how === 'commit' ? 'Slots were given back, rates stay spent.' : 'Everything was given back.';
    });
  return (
    <div class="buttons">
      <span>
        The lease <code>{id}</code> {isOpen ? 'is held.' : 'has ended.'}
      </span>
      {isOpen ? (
        <>
          <button type="button" onClick={() => end('commit')} disabled={action.isRunning}>
            Commit
          </button>
          <button type="button" onClick={() => end('rollback')} disabled={action.isRunning}>
            Give everything back
          </button>
        </>
      ) : null}
      <ActionResult action={action} takesFocus />
    </div>
  );
}
