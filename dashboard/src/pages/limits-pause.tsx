import { useEffect, useState } from 'preact/hooks';
import { readPause } from '../api/reads.js';
import { serverNow } from '../api/server-time.js';
import type { PausedBy } from '../api/types.js';
import { isRunning } from '../model/gauge.js';
import { nameOfPaused } from '../model/levels.js';
import { changed } from '../state/live.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { ActionResult } from '../ui/action-result.js';
import { Choice, Field, Form } from '../ui/field.js';
import { PauseNotice, pauseText } from '../ui/gauge.js';
import { Panel } from '../ui/panel.js';
import { Loaded } from '../ui/states.js';
import { type Action, useAction } from '../ui/use-action.js';
import { useFields } from '../ui/use-fields.js';

const EVERY_MS = 10_000;

interface Target {
  readonly entity: string;
  /** Empty: every resource. */
  readonly resource: string;
}

const LENGTHS = [
  ['60000', '1 minute'],
  ['600000', '10 minutes'],
  ['3600000', '1 hour'],
  ['86400000', '1 day'],
  ['', 'until resumed'],
] as const;

/** Pauses an entity, or its bucket of one resource, and resumes each of its pauses. */
export function PausePanel(props: Target) {
  const { values, field } = useFields({ ...props, length: '600000', reason: '' });
  const { entity, resource, length, reason } = values;
  const [last, setLast] = useState<Target | null>(null);
  useEffect(() => setLast(null), [props.entity, props.resource]);
  const action = useAction();
  const pause = (): void =>
    action.run(async () => {
      const target = { entityId: entity, ...(resource === '' ? {} : { resource }) };
      const body = { ...target, reason, ...(length === '' ? {} : { forMs: Number(length) }) };
      const paused = await api.value.send<PausedBy>('POST', '/v1/pause', { body });
      setLast({ entity, resource });
      return `${nameOfPaused(paused)} is ${pauseText(paused)}`;
    });
  const resume = (of: PausedBy): void =>
    action.run(async () => {
      const { entityId } = of;
      const body = { entityId, ...(of.resource === null ? {} : { resource: of.resource }) };
      const { resumed } = await api.value.send<{ readonly resumed: boolean }>('POST', '/v1/resume', { body });
      return `${nameOfPaused(of)} ${resumed ? 'was resumed' : 'was not paused'}.`;
    });
  const shown = last ?? props;
  return (
    <Panel title="Pause and resume">
      {shown.entity === '' ? null : <StoredPauses target={shown} action={action} onResume={resume} />}
      <Form label="Pause an entity" onSubmit={pause}>
        <Field label="Entity" {...field('entity')} required />
        <Field label="Resource" {...field('resource')} hint="Empty: every resource" />
        <Choice label="For" {...field('length')} options={LENGTHS} />
        <Field label="Reason" {...field('reason')} hint="Denied callers read it" required />
        <div class="buttons">
          <button type="submit" class="danger" disabled={action.isRunning}>
            Pause
          </button>
        </div>
      </Form>
      <ActionResult action={action} takesFocus />
    </Panel>
  );
}

interface StoredPausesProps {
  readonly target: Target;
  readonly action: Action;
  readonly onResume: (paused: PausedBy) => void;
}

/** The pause of an entity on every resource, and that of its bucket of the resource. */
function StoredPauses({ target: { entity, resource }, action, onResume }: StoredPausesProps) {
  const load = useLoad(
    `pauses ${entity}\n${resource}`,
    async (signal) => {
      const targets = [null, ...(resource === '' ? [] : [resource])].map((of) => ({ entityId: entity, resource: of }));
      const pauses = await Promise.all(targets.map((target) => readPause(api.value, target, signal)));
      return targets.flatMap((target, at) => {
        const stored = pauses[at];
        return isRunning(stored, serverNow()) ? [{ ...target, ...stored }] : [];
      });
    },
    { version: `${changed.value} ${action.done}`, everyMs: EVERY_MS },
  );
  return (
    <Loaded load={load}>
      {(pauses) =>
        pauses.length === 0 ? (
          <p class="muted">
            {entity} is not paused{resource === '' ? ' on every resource' : ''}.
          </p>
        ) : (
          pauses.map((paused) => (
            <PauseNotice key={nameOfPaused(paused)} paused={paused}>
              <button
                type="button"
                class="small"
                aria-label={`Resume ${nameOfPaused(paused)}`}
                disabled={action.isRunning}
                onClick={() => onResume(paused)}
              >
                Resume
              </button>
            </PauseNotice>
          ))
        )
      }
    </Loaded>
  );
}
