import type { Api } from '../api/http.js';
import { readEffective, readStatuses } from '../api/reads.js';
import type { ConfigView, EffectiveView, Level } from '../api/types.js';
import { kindOf, levelsOf } from '../model/levels.js';
import { limitsNow, tightestOf } from '../model/limits-now.js';
import { changed } from '../state/live.js';
import { setParams } from '../state/router.js';
import { api } from '../state/session.js';
import { type Load, useLoad } from '../state/use-load.js';
import { Field, Form } from '../ui/field.js';
import { Gauge, PauseNotice } from '../ui/gauge.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { useFields } from '../ui/use-fields.js';

const EVERY_MS = 1_000;
const CONFIG_EVERY_MS = 10_000;

interface LinkConfig {
  readonly id: string;
  readonly effective: EffectiveView;
  readonly levels: readonly { readonly level: Level; readonly config: ConfigView }[];
}

async function readConfigs(
  from: Api,
  ids: readonly string[],
  resource: string,
  signal: AbortSignal,
): Promise<LinkConfig[]> {
  return Promise.all(
    ids.map(async (id) => {
      const levels = levelsOf(id, resource);
      const [effective, ...configs] = await Promise.all([
        readEffective(from, id, resource, signal),
        ...levels.map((level) => from.get<ConfigView>('/v1/config', { ...level }, signal)),
      ]);
      const pairs = levels.map((level, at) => ({ level, config: configs[at] ?? { limits: [], onUnavailable: null } }));
      return { id, effective, levels: pairs };
    }),
  );
}

interface EntityLimitsProps {
  readonly id: string;
  readonly resource: string;
  /** Known resources. */
  readonly resources: readonly string[];
  /** The entity, and the parents that its spending counts for; null: the token may not read configs. */
  readonly ids: readonly string[] | null;
}

/**
 * What refuses an ask of the entity on a resource: the limits of every level with what is left, the one that is used
 * most, the pause, and the level of configuration that each limit comes from.
 */
export function EntityLimits({ id, resource, resources, ids }: EntityLimitsProps) {
  const { values, field } = useFields({ resource });
  const configs = useLoad(
    resource === '' || ids === null ? null : `configs ${ids.join('\n')} ${resource}`,
    (signal) => readConfigs(api.value, ids ?? [], resource, signal),
    { version: changed.value, everyMs: CONFIG_EVERY_MS },
  );
  const hasNone = configs.data?.[0]?.effective.limits.length === 0;
  // Without limits there is no status, which would be an error.
  const isAsked = resource !== '' && (ids === null || configs.data !== null) && !hasNone;
  const statuses = useLoad(
    isAsked ? `status ${id}\n${resource}` : null,
    (signal) => readStatuses(api.value, id, resource, signal),
    { everyMs: EVERY_MS, version: changed.value },
  );
  const waitsFor: Load<unknown> = isAsked ? statuses : configs;
  const configured = new Map((configs.data ?? []).map((one) => [one.id, one.effective.limits]));
  const paused = statuses.data?.find((status) => status.paused)?.paused;
  const levels = limitsNow(statuses.data ?? [], configured);
  const tightest = tightestOf(levels);
  return (
    <Panel title={`Limits of ${id}${resource === '' ? '' : ` on ${resource}`}`} wide>
      <Form label="Choose a resource" onSubmit={() => setParams({ resource: values.resource })}>
        <Field label="Resource" {...field('resource')} choices={resources} required />
        <button type="submit">Show</button>
      </Form>
      {paused === undefined ? null : <PauseNotice paused={paused} />}
      {resource === '' ? <Empty>Name a resource.</Empty> : null}
      {hasNone ? <Empty>No limits apply to it: each ask is an error.</Empty> : null}
      {resource === '' || hasNone ? null : <Loaded load={waitsFor}>{() => null}</Loaded>}
      <div class="grid narrow">
        {levels.map(({ entityId, gauges }) => {
          const config = configs.data?.find((one) => one.id === entityId);
          return (
            <div key={entityId} class="bucket">
              <h3>
                <EntityLink id={entityId} resource={resource} />
              </h3>
              {gauges.map((view) => (
                <Gauge
                  key={view.name}
                  view={view}
                  isPaused={paused !== undefined}
                  isTightest={levels.length > 1 && view === tightest}
                />
              ))}
              {config === undefined ? null : <LinkLevels config={config} />}
            </div>
          );
        })}
      </div>
    </Panel>
  );
}

/** Why a level has these limits. */
function LinkLevels({ config: { effective, levels } }: { readonly config: LinkConfig }) {
  const winner = levels.findIndex(({ config }) => config.limits.length > 0);
  const isInCode = winner === -1 && effective.limits.length > 0;
  const rows = levels.map(({ level, config }, at) => ({ name: kindOf(level), config, applies: at === winner }));
  return (
    <ol class="levels" aria-label="Why these limits: the first level that has limits applies">
      {[...rows, ...(isInCode ? [{ name: 'code of the server', config: effective, applies: true }] : [])].map(
        ({ name, config, applies }) => (
          <li key={name} class={applies ? 'applies' : undefined}>
            <span>{name}</span>
            <span>
              {config.limits.length === 0 ? 'none' : config.limits.map(({ text }) => <code key={text}>{text}</code>)}
            </span>
            {applies ? <span class="tag ok">applies</span> : null}
          </li>
        ),
      )}
    </ol>
  );
}
