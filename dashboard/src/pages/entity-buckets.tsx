import type { Api } from '../api/http.js';
import type { BucketView, Page } from '../api/types.js';
import { formatCount } from '../model/format.js';
import { gaugeOf, isRunning } from '../model/gauge.js';
import { serverNow } from '../api/server-time.js';
import type { Load } from '../state/use-load.js';
import { Link } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const MOST_BUCKETS = 20;

/** The resource of a bucket: one for limits of a single call has a hash behind its name. */
export function resourceOf({ resource }: Pick<BucketView, 'resource'>): string {
  return resource.split('~')[0] ?? resource;
}

/** The first buckets of an entity; that of the chosen resource is the first of them. */
export async function readBuckets(
  from: Api,
  entityId: string,
  resource: string,
  signal: AbortSignal,
): Promise<Page<BucketView>> {
  const query = { entityId, limit: String(MOST_BUCKETS) };
  const { items, next } = await from.get<Page<BucketView>>('/v1/buckets', query, signal);
  const isChosen = (bucket: BucketView): boolean => bucket.resource === resource;
  if (resource === '' || next === null || items.some(isChosen)) {
    return { items: items.toSorted((a, b) => Number(isChosen(b)) - Number(isChosen(a))), next };
  }
  const { bucket } = await from.get<{ readonly bucket: BucketView | null }>(
    '/v1/bucket',
    { entityId, resource },
    signal,
  );
  return { items: bucket === null ? items : [bucket, ...items], next };
}

function usedText({ limits, paused }: BucketView): string {
  const used = limits.map(({ limit, available }) => `${limit.name}: ${gaugeOf(limit, available).summary}`);
  return [...used, ...(isRunning(paused, serverNow()) ? ['paused'] : [])].join('; ');
}

const COLUMNS: readonly Column<BucketView>[] = [
  ['Used, by the limits of its last call', usedText],
  ['Grants', ({ acquires }) => formatCount(acquires), 'number'],
  ['Leases', ({ holders }) => formatCount(holders), 'number'],
  ['Expired', ({ expired }) => formatCount(expired), 'number'],
];

interface EntityBucketsProps {
  readonly load: Load<Page<BucketView>>;
  readonly chosen: string;
}

/** What the store has of each resource of an entity. A bucket has the limits of its last call. */
export function EntityBuckets({ load, chosen }: EntityBucketsProps) {
  const name: Column<BucketView> = [
    'Resource',
    (bucket) => (
      <Link
        to="entity"
        params={{ id: bucket.entityId, resource: resourceOf(bucket) }}
        class="id"
        current={bucket.resource === chosen}
      >
        {bucket.resource.includes('~') ? `${resourceOf(bucket)}, limits of its calls` : bucket.resource}
      </Link>
    ),
  ];
  return (
    <Panel title="Buckets" wide>
      <Loaded load={load}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <Empty>It has taken nothing yet: every limit is untouched.</Empty>
            ) : (
              <Table caption="Buckets" columns={[name, ...COLUMNS]} rows={items} keyOf={({ resource }) => resource} />
            )}
            {next === null ? null : <p class="muted">The first {MOST_BUCKETS} buckets are shown.</p>}
          </>
        )}
      </Loaded>
    </Panel>
  );
}
