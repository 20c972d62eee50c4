import type { BucketView, EffectiveView, Page } from '../api/types.js';
import { readEffective } from '../api/reads.js';
import type { Api } from '../api/http.js';
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
const MOST_BUCKETS = 20;

interface BucketWithConfig {
  readonly bucket: BucketView;
  readonly config: EffectiveView;
}

/** A bucket does not store the options of its limits, so that the config is read beside it. */
async function readBuckets(from: Api, entityId: string, signal: AbortSignal) {
  const { items, next } = await from.get<Page<BucketView>>(
    '/v1/buckets',
    { entityId, limit: String(MOST_BUCKETS) },
    signal,
  );
  const buckets = await Promise.all(
    items.map(async (bucket): Promise<BucketWithConfig> => {
      const resource = bucket.resource.split('~')[0] ?? bucket.resource;
      return { bucket, config: await readEffective(from, entityId, resource, signal) };
    }),
  );
  return { buckets, hasMore: next !== null };
}

/** The limits of each bucket of an entity as gauges. */
export function EntityBuckets({ id, resource }: { readonly id: string; readonly resource: string }) {
  const load = useLoad(`buckets ${id}`, (signal) => readBuckets(api.value, id, signal), {
    everyMs: EVERY_MS,
    version: changed.value,
  });
  return (
    <Panel title="Limits now" scope="store">
      <Loaded load={load}>
        {({ buckets, hasMore }) =>
          buckets.length === 0 ? (
            <Empty>It has taken nothing yet: every limit is untouched.</Empty>
          ) : (
            <>
              {buckets.map(({ bucket, config }) => (
                <Bucket
                  key={bucket.resource}
                  entityId={id}
                  bucket={bucket}
                  config={config}
                  isChosen={bucket.resource === resource}
                />
              ))}
              {hasMore ? <p class="muted">The first {MOST_BUCKETS} buckets are shown.</p> : null}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

interface BucketProps extends BucketWithConfig {
  readonly entityId: string;
  readonly isChosen: boolean;
}

function Bucket({ entityId, bucket, config, isChosen }: BucketProps) {
  const { resource, limits, holders, acquires, expired, paused } = bucket;
  const running = isRunning(paused, Date.now()) ? paused : undefined;
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
            config.limits.find(({ name }) => name === limit.name),
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
