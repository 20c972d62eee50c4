import type { BucketView, LimitView, Page, StoredPause } from '../api/types.js';
import { readEffective } from '../api/reads.js';
import { formatCount } from '../model/format.js';
import { gaugeOf, isRunning } from '../model/gauge.js';
import { changed } from '../state/live.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Gauge } from '../ui/gauge.js';
import { Link } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';

const EVERY_MS = 1_000;
const CONFIG_EVERY_MS = 10_000;
const MOST_BUCKETS = 20;

/** The resource of a bucket: one for limits of a single call has a hash behind its name. */
function resourceOf({ resource }: BucketView): string {
  return resource.split('~')[0] ?? resource;
}

interface EntityBucketsProps {
  readonly id: string;
  readonly resource: string;
  /** The pause of the entity on every resource. */
  readonly paused: StoredPause | undefined;
}

/** The limits of each bucket of an entity as gauges. A bucket does not store the options of its limits: the config has them. */
export function EntityBuckets({ id, resource, paused }: EntityBucketsProps) {
  const query = { entityId: id, limit: String(MOST_BUCKETS) };
  const load = useLoad(`buckets ${id}`, (signal) => api.value.get<Page<BucketView>>('/v1/buckets', query, signal), {
    everyMs: EVERY_MS,
    version: changed.value,
  });
  const resources = [...new Set((load.data?.items ?? []).map(resourceOf))];
  const configs = useLoad(
    resources.length === 0 ? null : `options ${id} ${resources.join(' ')}`,
    async (signal) => {
      const found = await Promise.all(resources.map((name) => readEffective(api.value, id, name, signal)));
      return new Map(resources.map((name, at) => [name, found[at]?.limits ?? []]));
    },
    { everyMs: CONFIG_EVERY_MS, version: changed.value },
  );
  return (
    <Panel title="Limits now" scope="store">
      <Loaded load={load}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty>It has taken nothing yet: every limit is untouched.</Empty>
          ) : (
            <>
              {items.map((bucket) => (
                <Bucket
                  key={bucket.resource}
                  bucket={bucket}
                  configured={configs.data?.get(resourceOf(bucket)) ?? []}
                  isChosen={bucket.resource === resource}
                  paused={paused}
                />
              ))}
              {next === null ? null : <p class="muted">The first {MOST_BUCKETS} buckets are shown.</p>}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

interface BucketProps {
  readonly bucket: BucketView;
  readonly configured: readonly LimitView[];
  readonly isChosen: boolean;
  readonly paused: StoredPause | undefined;
}

function Bucket({ bucket, configured, isChosen, paused: ofEntity }: BucketProps) {
  const { entityId, resource, limits, holders, acquires, expired, paused } = bucket;
  const running = [paused, ofEntity].find((one) => isRunning(one, Date.now()));
  return (
    <div class="bucket">
      <h3>
        <Link to="entity" params={{ id: entityId, resource }} current={isChosen}>
          {resource}
        </Link>
      </h3>
      {limits.map(({ limit, available }) => (
        <Gauge
          key={limit.name}
          view={gaugeOf(
            limit,
            available,
            configured.find(({ name }) => name === limit.name),
          )}
          paused={running}
        />
      ))}
      <p class="muted small">
        grants {formatCount(acquires)} · leases held {formatCount(holders)} · leases expired {formatCount(expired)}
      </p>
    </div>
  );
}
