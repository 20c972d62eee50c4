import { cascadeOf, readChain, searchEntities } from '../api/reads.js';
import { serverNow } from '../api/server-time.js';
import type { SessionView } from '../api/types.js';
import { isRunning } from '../model/gauge.js';
import { api } from '../state/session.js';
import { changed } from '../state/live.js';
import { navigate, route } from '../state/router.js';
import { useLoad } from '../state/use-load.js';
import { Field, Form } from '../ui/field.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { Table } from '../ui/table.js';
import { useFields } from '../ui/use-fields.js';
import { EntityBuckets, readBuckets, resourceOf } from './entity-buckets.js';
import { EntityDenials } from './entity-denials.js';
import { EntityLimits } from './entity-limits.js';
import { EntityTree } from './entity-tree.js';

const MOST_FOUND = 50;
const EVERY_MS = 10_000;
const BUCKETS_EVERY_MS = 4_000;
/** A search may read many pages. */
const SEARCH_EVERY_MS = 30_000;

/** One entity: its place in the tree, its limits as gauges, where they come from, and its last denials. */
export function EntityPage({ view }: { readonly view: SessionView }) {
  const { id = '', resource = '', search = '' } = route.value.params;
  return (
    <div class="page">
      <Search view={view} search={search === '' ? id : search} />
      {id === '' ? (
        view.role === 'admin' ? (
          <Found search={search} />
        ) : (
          <Empty>Name an entity to see its limits.</Empty>
        )
      ) : null}
      {id === '' ? null : <Details key={id} id={id} resource={resource} isAdmin={view.role === 'admin'} />}
    </div>
  );
}

function Search({ view, search }: { readonly view: SessionView; readonly search: string }) {
  const { values, field } = useFields({ search });
  const text = values.search;
  const isAdmin = view.role === 'admin';
  const prefix =
    view.entityPrefix === null ? {} : { hint: `This token covers ids that begin with ${view.entityPrefix}` };
  return (
    <Form label="Find an entity" onSubmit={() => navigate('entity', isAdmin ? { search: text } : { id: text })}>
      <Field label={isAdmin ? 'Id or name' : 'Entity id'} {...field('search')} {...prefix} />
      <button type="submit" class="primary">
        {isAdmin ? 'Search' : 'Open'}
      </button>
      {isAdmin ? (
        <button type="button" onClick={() => navigate('entity', { id: text })}>
          Open this id
        </button>
      ) : null}
    </Form>
  );
}

function Found({ search }: { readonly search: string }) {
  const load = useLoad(`found ${search}`, (signal) => searchEntities(api.value, search, MOST_FOUND, signal), {
    version: changed.value,
    everyMs: SEARCH_EVERY_MS,
  });
  return (
    <Panel title={search === '' ? 'Entities with a record' : `Entities with “${search}”`}>
      <Loaded load={load}>
        {({ items, hasMore }) =>
          items.length === 0 ? (
            <Empty>No record has this text. An entity without a record can be opened by its id.</Empty>
          ) : (
            <>
              <Table
                caption="Entities"
                rows={items}
                keyOf={(entity) => entity.id}
                columns={[
                  ['Id', (entity) => <EntityLink id={entity.id} />],
                  ['Name', (entity) => entity.name ?? ''],
                  ['Parent', (entity) => (entity.parentId === null ? '' : <EntityLink id={entity.parentId} />)],
                  [
                    'State',
                    (entity) => (isRunning(entity.paused, serverNow()) ? <span class="tag warn">paused</span> : ''),
                  ],
                ]}
              />
              {hasMore ? <p class="muted">There are more: search for a longer text.</p> : null}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

interface DetailsProps {
  readonly id: string;
  readonly resource: string;
  readonly isAdmin: boolean;
}

function Details({ id, resource, isAdmin }: DetailsProps) {
  const options = { version: changed.value, everyMs: EVERY_MS };
  const chain = useLoad(isAdmin ? `chain ${id}` : null, (signal) => readChain(api.value, id, false, signal), options);
  const buckets = useLoad(isAdmin ? `buckets ${id}` : null, (signal) => readBuckets(api.value, id, resource, signal), {
    version: `${changed.value} ${resource}`,
    everyMs: BUCKETS_EVERY_MS,
  });
  const resources = [...new Set((buckets.data?.items ?? []).map(resourceOf))];
  const chosen = resource === '' ? (resources[0] ?? '') : resource;
  if (!isAdmin) {
    return (
      <>
        <EntityLimits id={id} resource={resource} resources={[]} ids={null} />
        <EntityDenials id={id} />
      </>
    );
  }
  return (
    <>
      <Loaded load={chain}>
        {(links) => (
          <EntityLimits id={id} resource={chosen} resources={resources} ids={cascadeOf(links).map((link) => link.id)} />
        )}
      </Loaded>
      <div class="grid two">
        <EntityDenials id={id} />
        {chain.data === null ? null : <EntityTree chain={chain.data} />}
      </div>
      <EntityBuckets load={buckets} chosen={chosen} />
    </>
  );
}
