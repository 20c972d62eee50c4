import { useState } from 'preact/hooks';
import { readStatuses } from '../api/reads.js';
import { gaugeOf } from '../model/gauge.js';
import { navigate } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Field, Form } from '../ui/field.js';
import { Gauge } from '../ui/gauge.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';

/** The limits of an entity on one resource, at every level: what a token of the role app may read. */
export function OwnStatus({ id, resource }: { readonly id: string; readonly resource: string }) {
  const [name, setName] = useState(resource);
  const key = resource === '' ? null : `status ${id} ${resource}`;
  const load = useLoad(key, (signal) => readStatuses(api.value, id, resource, signal), { everyMs: 1_000 });
  return (
    <Panel title={id} scope="store">
      <Form label="Choose a resource" onSubmit={() => navigate('entity', { id, resource: name.trim() })}>
        <Field label="Resource" value={name} onInput={setName} required />
        <button type="submit">Show</button>
      </Form>
      {key === null ? (
        <Empty>Name a resource.</Empty>
      ) : (
        <Loaded load={load}>
          {(statuses) =>
            [...new Set(statuses.map(({ entityId }) => entityId))].map((entityId) => (
              <div key={entityId} class="bucket">
                <h3>{entityId}</h3>
                {statuses
                  .filter((status) => status.entityId === entityId)
                  .map((status) => (
                    <Gauge key={status.limit.name} view={gaugeOf(status.limit, status.available)} />
                  ))}
              </div>
            ))
          }
        </Loaded>
      )}
    </Panel>
  );
}
