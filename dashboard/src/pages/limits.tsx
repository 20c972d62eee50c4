import { useState } from 'preact/hooks';
import { readPages } from '../api/http.js';
import type { ConfigView, LevelView } from '../api/types.js';
import { levelsOf } from '../model/levels.js';
import { changed } from '../state/live.js';
import { navigate, route } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Field, Form } from '../ui/field.js';
import { Panel } from '../ui/panel.js';
import { Loaded } from '../ui/states.js';
import { LevelCard } from './limits-level.js';
import { LimitsFile } from './limits-file.js';
import { PausePanel } from './limits-pause.js';

const MOST_LEVELS = 1_000;
const EVERY_MS = 10_000;
/** Until the levels are read. */
const NO_LEVELS = { items: [], hasMore: true };

/** The four levels side by side, with edits; pauses; a limits file. */
export function LimitsPage() {
  const { entity = '', resource = '' } = route.value.params;
  const [turn, setTurn] = useState(0);
  const version = `${changed.value} ${turn}`;
  const levels = levelsOf(entity, resource);
  const options = { version, everyMs: EVERY_MS };
  const configs = useLoad(
    `configs ${entity}\n${resource}`,
    (signal) => Promise.all(levels.map((level) => api.value.get<ConfigView>('/v1/config', { ...level }, signal))),
    options,
  );
  const all = useLoad(
    'levels',
    (signal) =>
      readPages<LevelView>(
        (after) => api.value.get('/v1/config/levels', { limit: '1000', after }, signal),
        MOST_LEVELS,
      ),
    options,
  );
  const resources = [...new Set((all.data?.items ?? []).flatMap(({ level }) => level.resource ?? []))];
  return (
    <div class="page">
      <LimitsForm key={`${entity}\n${resource}`} entity={entity} resource={resource} resources={resources} />
      <Panel title="Limits by level" scope="store">
        <p class="muted">The first level that has limits applies. Name an entity or a resource to see its levels.</p>
        <Loaded load={configs}>
          {(views) => (
            <div class="level-cards">
              {levels.map((level, at) => (
                <LevelCard
                  key={JSON.stringify(level)}
                  level={level}
                  config={views[at] ?? { limits: [], onUnavailable: null }}
                  applies={at === views.findIndex(({ limits }) => limits.length > 0)}
                  all={all.data ?? NO_LEVELS}
                  onChanged={() => setTurn(turn + 1)}
                />
              ))}
            </div>
          )}
        </Loaded>
      </Panel>
      <div class="grid">
        <PausePanel key={`${entity}\n${resource}`} entity={entity} resource={resource} />
        <LimitsFile onChanged={() => setTurn(turn + 1)} />
      </div>
    </div>
  );
}

interface LimitsFormProps {
  readonly entity: string;
  readonly resource: string;
  readonly resources: readonly string[];
}

function LimitsForm(props: LimitsFormProps) {
  const [entity, setEntity] = useState(props.entity);
  const [resource, setResource] = useState(props.resource);
  return (
    <Form
      label="Choose levels"
      onSubmit={() => navigate('limits', { entity: entity.trim(), resource: resource.trim() })}
    >
      <Field label="Entity" value={entity} onInput={setEntity} />
      <Field label="Resource" value={resource} onInput={setResource} choices={props.resources} />
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
}
