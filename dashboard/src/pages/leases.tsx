import { useState } from 'preact/hooks';
import { readPages } from '../api/http.js';
import type { LeaseView } from '../api/types.js';
import { formatAge, formatDuration } from '../model/format.js';
import { changed } from '../state/live.js';
import { navigate, route } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { ActionResult } from '../ui/action-result.js';
import { ConfirmButton } from '../ui/confirm-button.js';
import { Field, Form } from '../ui/field.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { Table } from '../ui/table.js';
import { useAction } from '../ui/use-action.js';

const MOST_LEASES = 500;
const EVERY_MS = 2_000;

/** Who holds what since when. An operator can end a lease whose process is gone. */
export function LeasesPage() {
  const { entity = '', resource = '' } = route.value.params;
  const action = useAction();
  const query = { entityId: entity, resource: entity === '' ? '' : resource, limit: '500' };
  const load = useLoad(
    `leases ${entity}\n${resource}`,
    (signal) => readPages<LeaseView>((after) => api.value.get('/v1/leases', { ...query, after }, signal), MOST_LEASES),
    { everyMs: EVERY_MS, version: changed.value },
  );
  const release = (lease: LeaseView): void =>
    action.run(async () => {
      const owner = { entityId: lease.entityId, resource: lease.resource.split('~')[0] ?? lease.resource };
      await api.value.send('DELETE', `/v1/leases/${encodeURIComponent(lease.id)}`, { query: owner });
      load.reload();
      return `The lease ${lease.id} of ${lease.entityId} was released.`;
    });
  return (
    <div class="page">
      <LeasesForm key={`${entity}\n${resource}`} entity={entity} resource={resource} />
      <ActionResult action={action} />
      <Panel title={entity === '' ? 'Leases of the namespace' : `Leases of ${entity}`} scope="store">
        <Loaded load={load}>
          {({ items, hasMore }) =>
            items.length === 0 ? (
              <Empty>No lease is held.</Empty>
            ) : (
              <>
                <LeaseTable leases={items} onRelease={release} />
                {hasMore ? <p class="muted">The first {MOST_LEASES} are shown: choose an entity.</p> : null}
                <p class="muted small">
                  A lease that cascades is listed once for each of its levels. Each row is released on its own.
                </p>
              </>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}

function LeasesForm(props: { readonly entity: string; readonly resource: string }) {
  const [entity, setEntity] = useState(props.entity);
  const [resource, setResource] = useState(props.resource);
  return (
    <Form
      label="Choose leases"
      onSubmit={() => navigate('leases', { entity: entity.trim(), resource: resource.trim() })}
    >
      <Field label="Entity" value={entity} onInput={setEntity} hint="Empty: the whole namespace" />
      <Field label="Resource" value={resource} onInput={setResource} hint="Only together with an entity" />
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
}

interface LeaseTableProps {
  readonly leases: readonly LeaseView[];
  readonly onRelease: (lease: LeaseView) => void;
}

function LeaseTable({ leases, onRelease }: LeaseTableProps) {
  const nowMs = Date.now();
  return (
    <Table
      caption="Leases with a holder"
      rows={leases}
      keyOf={({ id, entityId, resource }) => `${id}\n${entityId}\n${resource}`}
      columns={[
        { title: 'Entity', cell: ({ entityId, resource }) => <EntityLink id={entityId} resource={resource} /> },
        { title: 'Resource', cell: ({ resource }) => resource },
        {
          title: 'Holds',
          cell: ({ amounts }) =>
            Object.entries(amounts).map(([name, amount]) => <code key={name}>{`${name}=${amount}`}</code>),
        },
        { title: 'Caller', cell: ({ caller }) => caller ?? '–' },
        {
          title: 'Held for',
          cell: ({ acquiredAt }) => (acquiredAt === null ? '–' : formatAge(Date.parse(acquiredAt), nowMs)),
          isNumber: true,
        },
        { title: 'Expires', cell: ({ expiresAt }) => expiryText(Date.parse(expiresAt) - nowMs), isNumber: true },
        { title: 'Lease', cell: ({ id }) => <code>{id}</code> },
        {
          title: 'Release',
          cell: (lease) => (
            <ConfirmButton
              label="Release"
              question="Release now"
              about={`lease ${lease.id} of ${lease.entityId}`}
              onConfirm={() => onRelease(lease)}
            />
          ),
        },
      ]}
    />
  );
}

function expiryText(inMs: number): string {
  return inMs <= 0 ? 'expired' : `in ${formatDuration(Math.ceil(inMs / 1_000) * 1_000)}`;
}
