import { readPages } from '../api/http.js';
import { serverNow } from '../api/server-time.js';
import type { LeaseView } from '../api/types.js';
import { formatAge, formatDuration } from '../model/format.js';
import { changed } from '../state/live.js';
import { route } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { ActionResult } from '../ui/action-result.js';
import { ConfirmButton } from '../ui/confirm-button.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { Table } from '../ui/table.js';
import { TargetForm } from '../ui/target-form.js';
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
      // Without an entity and a resource the server ends it in the buckets of all its levels.
      await api.value.send('DELETE', `/v1/leases/${encodeURIComponent(lease.id)}`);
      load.reload();
      return `The lease ${lease.id} was released at all its levels.`;
    });
  return (
    <div class="page">
      <TargetForm
        label="Choose leases"
        page="leases"
        entityHint="Empty: the whole namespace"
        resourceHint="Only together with an entity"
      />
      <ActionResult action={action} takesFocus />
      <Panel title={entity === '' ? 'Leases of the namespace' : `Leases of ${entity}`}>
        <Loaded load={load}>
          {({ items: listed, hasMore }) => {
            const nowMs = serverNow();
            // The store lists an expired lease until the next ask of its bucket.
            const items = listed.filter(({ expiresAt }) => Date.parse(expiresAt) > nowMs);
            return items.length === 0 ? (
              <Empty>No lease is held.</Empty>
            ) : (
              <>
                <LeaseTable leases={items.toSorted(byAge)} onRelease={release} />
                {hasMore ? <p class="muted">The first {MOST_LEASES} are shown: choose an entity.</p> : null}
                <p class="muted small">
                  A lease that cascades is listed once for each of its levels. A release ends it at all of them.
                </p>
              </>
            );
          }}
        </Loaded>
      </Panel>
    </div>
  );
}

/** The lease that is held longest first; one of which it is not known last. */
function byAge({ acquiredAt: a }: LeaseView, { acquiredAt: b }: LeaseView): number {
  return (a ?? '~') < (b ?? '~') ? -1 : 1;
}

interface LeaseTableProps {
  readonly leases: readonly LeaseView[];
  readonly onRelease: (lease: LeaseView) => void;
}

function LeaseTable({ leases, onRelease }: LeaseTableProps) {
  const nowMs = serverNow();
  return (
    <Table
      caption="Leases with a holder"
      rows={leases}
      keyOf={({ id, entityId, resource }) => `${id}\n${entityId}\n${resource}`}
      columns={[
        ['Entity', ({ entityId, resource }) => <EntityLink id={entityId} resource={resource} />],
        ['Resource', ({ resource }) => resource],
        [
          'Holds',
          ({ amounts }) =>
            Object.entries(amounts).map(([name, amount]) => <code key={name}>{`${name}=${amount}`}</code>),
        ],
        ['Caller', ({ caller }) => caller ?? '–'],
        [
          'Held for',
          ({ acquiredAt }) => (acquiredAt === null ? '–' : formatAge(Date.parse(acquiredAt), nowMs)),
          'number',
        ],
        ['Expires in', ({ expiresAt }) => expiryText(Date.parse(expiresAt) - nowMs), 'number'],
        ['Lease', ({ id }) => <code>{id}</code>],
        [
          'Release',
          (lease) => (
            <ConfirmButton
              label="Release"
              question="Release now"
              about={`lease ${lease.id} of ${lease.entityId}`}
              onConfirm={() => onRelease(lease)}
            />
          ),
        ],
      ]}
    />
  );
}

function expiryText(inMs: number): string {
  return formatDuration(Math.ceil(inMs / 1_000) * 1_000);
}
