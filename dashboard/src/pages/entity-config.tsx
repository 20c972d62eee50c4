import type { Api } from '../api/http.js';
import { type ChainLink, readEffective } from '../api/reads.js';
import type { ConfigView, EffectiveView, Level } from '../api/types.js';
import { kindOf, levelsOf } from '../model/levels.js';
import { changed } from '../state/live.js';
import { setParams } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Field, Form } from '../ui/field.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { useState } from 'preact/hooks';

const EVERY_MS = 10_000;

interface LinkConfig {
  readonly id: string;
  readonly effective: EffectiveView;
  readonly levels: readonly { readonly level: Level; readonly config: ConfigView }[];
}

/** As far as the spending of the entity counts for its parents. */
function cascadeOf(chain: readonly ChainLink[]): readonly string[] {
  const end = chain.findIndex(({ record }) => record?.cascade !== true);
  return chain.slice(0, end === -1 ? undefined : end + 1).map(({ id }) => id);
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

/** The limits that apply to an entity on a resource, and the level that each of them comes from. */
export function EntityConfig({ chain, resource }: { readonly chain: readonly ChainLink[]; readonly resource: string }) {
  const [name, setName] = useState(resource);
  const ids = cascadeOf(chain);
  const key = resource === '' ? null : `configs ${ids.join('\n')} ${resource}`;
  const load = useLoad(key, (signal) => readConfigs(api.value, ids, resource, signal), {
    version: changed.value,
    everyMs: EVERY_MS,
  });
  return (
    <Panel title={resource === '' ? 'Why these limits' : `Why these limits on ${resource}`} scope="store">
      <Form label="Choose a resource" onSubmit={() => setParams({ resource: name.trim() })}>
        <Field label="Resource" value={name} onInput={setName} required />
        <button type="submit">Show</button>
      </Form>
      {key === null ? (
        <Empty>Name a resource, or follow the link of a bucket.</Empty>
      ) : (
        <Loaded load={load}>
          {(configs) => configs.map((config) => <LinkLevels key={config.id} config={config} />)}
        </Loaded>
      )}
    </Panel>
  );
}

function LinkLevels({ config: { id, effective, levels } }: { readonly config: LinkConfig }) {
  const winner = levels.findIndex(({ config }) => config.limits.length > 0);
  return (
    <div class="bucket">
      <h3 class="id">{id}</h3>
      <ol class="levels">
        {levels.map(({ level, config }, at) => (
          <li key={kindOf(level)} class={at === winner ? 'applies' : undefined}>
            <span>{kindOf(level)}</span>
            <span>
              {config.limits.length === 0 ? (
                <span class="muted">none</span>
              ) : (
                config.limits.map(({ text }) => <code key={text}>{text}</code>)
              )}
            </span>
            {at === winner ? <span class="tag ok">applies</span> : null}
          </li>
        ))}
        {winner === -1 && effective.limits.length > 0 ? (
          <li class="applies">
            <span>code of the server</span>
            <span>
              {effective.limits.map(({ text }) => (
                <code key={text}>{text}</code>
              ))}
            </span>
            <span class="tag ok">applies</span>
          </li>
        ) : null}
      </ol>
    </div>
  );
}
