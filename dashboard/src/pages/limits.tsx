import { useState } from 'preact/hooks';
import { readPages } from '../api/http.js';
import type { ConfigView, Level, LevelView } from '../api/types.js';
import { levelsOf } from '../model/levels.js';
import { changed } from '../state/live.js';
import { route } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Panel } from '../ui/panel.js';
import { Loaded } from '../ui/states.js';
import { TargetForm } from '../ui/target-form.js';
import { LevelCard } from './limits-level.js';
import { LimitsFile } from './limits-file.js';
import { PausePanel } from './limits-pause.js';

const MOST_LEVELS = 1_000;
const EVERY_MS = 10_000;
/** Until the levels are read. */
const NO_LEVELS = { items: [], hasMore: true };

const isFilled = ({ limits }: ConfigView): boolean => limits.length > 0;

/** The level that applies where the one before it has no limits. */
function nextFilled(levels: readonly Level[], views: readonly ConfigView[], at: number): LevelView | null {
  const next = views.findIndex((view, place) => place > at && isFilled(view));
  const [level, view] = [levels[next], views[next]];
  return level === undefined || view === undefined ? null : { ...view, level };
}

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
      <TargetForm label="Choose levels" page="limits" resources={resources} />
      <Panel title="Limits by level">
        <p class="muted">The first level that has limits applies. Name an entity or a resource to see its levels.</p>
        <Loaded load={configs}>
          {(views) => (
            <div class="level-cards">
              {levels.map((level, at) => (
                <LevelCard
                  key={JSON.stringify(level)}
                  level={level}
                  config={views[at] ?? { limits: [], onUnavailable: null }}
                  applies={at === views.findIndex(isFilled)}
                  weaker={nextFilled(levels, views, at)}
                  all={all.data ?? NO_LEVELS}
                  onChanged={() => setTurn(turn + 1)}
                />
              ))}
            </div>
          )}
        </Loaded>
      </Panel>
      <div class="grid">
        <PausePanel entity={entity} resource={resource} />
        <LimitsFile onChanged={() => setTurn(turn + 1)} />
      </div>
    </div>
  );
}
