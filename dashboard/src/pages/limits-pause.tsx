import { useState } from 'preact/hooks';
import { readEntity } from '../api/reads.js';
import type { BucketView, PausedBy } from '../api/types.js';
import { isRunning } from '../model/gauge.js';
import { changed } from '../state/live.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { ActionResult } from '../ui/action-result.js';
import { Choice, Field, Form } from '../ui/field.js';
import { pauseText } from '../ui/gauge.js';
import { Panel } from '../ui/panel.js';
import { Loaded } from '../ui/states.js';
import { useAction } from '../ui/use-action.js';

const EVERY_MS = 10_000;
const LENGTHS = [
  ['60000', '1 minute'],
  ['600000', '10 minutes'],
  ['3600000', '1 hour'],
  ['86400000', '1 day'],
  ['', 'until resumed'],
] as const;

/** Pauses an entity, or its bucket of one resource, and resumes it. */
export function PausePanel(props: { readonly entity: string; readonly resource: string }) {
  const [entity, setEntity] = useState(props.entity);
  const [resource, setResource] = useState(props.resource);
  const [length, setLength] = useState('600000');
  const [reason, setReason] = useState('');
  const action = useAction();
  const target = { entityId: entity.trim(), ...(resource.trim() === '' ? {} : { resource: resource.trim() }) };
  const pause = (): void =>
    action.run(async () => {
      const body = { ...target, reason, ...(length === '' ? {} : { forMs: Number(length) }) };
      const paused = await api.value.send<PausedBy>('POST', '/v1/pause', { body });
      return `${paused.entityId} is ${pauseText(paused)}`;
    });
  const resume = (): void =>
    action.run(async () => {
      const { resumed } = await api.value.send<{ readonly resumed: boolean }>('POST', '/v1/resume', { body: target });
      return resumed ? `${target.entityId} was resumed.` : `${target.entityId} was not paused.`;
    });
  return (
    <Panel title="Pause and resume" scope="store">
      {props.entity === '' ? null : <StoredPauses entity={props.entity} resource={props.resource} />}
      <Form label="Pause an entity" onSubmit={pause}>
        <Field label="Entity" value={entity} onInput={setEntity} required />
        <Field label="Resource" value={resource} onInput={setResource} hint="Empty: every resource" />
        <Choice label="For" value={length} options={LENGTHS} onChange={setLength} />
        <Field label="Reason" value={reason} onInput={setReason} hint="Denied callers read it" required />
        <div class="buttons">
          <button type="submit" class="danger" disabled={action.isRunning}>
            Pause
          </button>
          <button type="button" onClick={resume} disabled={action.isRunning || entity.trim() === ''}>
            Resume
          </button>
        </div>
      </Form>
      <ActionResult action={action} />
    </Panel>
  );
}

function StoredPauses({ entity, resource }: { readonly entity: string; readonly resource: string }) {
  const load = useLoad(
    `pauses ${entity}\n${resource}`,
    async (signal) => {
      const record = await readEntity(api.value, entity, signal);
      const query = { entityId: entity, resource };
      const { bucket } =
        resource === ''
          ? { bucket: null }
          : await api.value.get<{ readonly bucket: BucketView | null }>('/v1/bucket', query, signal);
      return [record?.paused, bucket?.paused].filter((one) => isRunning(one, Date.now()));
    },
    { version: changed.value, everyMs: EVERY_MS },
  );
  return (
    <Loaded load={load}>
      {(pauses) =>
        pauses.length === 0 ? (
          <p class="muted">{entity} is not paused.</p>
        ) : (
          pauses.map((pause) => (
            <p key={pause.reason} class="notice warn">
              {entity} is {pauseText(pause)}
            </p>
          ))
        )
      }
    </Loaded>
  );
}
