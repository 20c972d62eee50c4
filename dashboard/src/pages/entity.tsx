import { useState } from 'preact/hooks';
import { readChain, searchEntities } from '../api/reads.js';
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
import { EntityBuckets } from './entity-buckets.js';
import { EntityConfig } from './entity-config.js';
import { EntityDenials } from './entity-denials.js';
import { EntityTree } from './entity-tree.js';
import { OwnStatus } from './entity-status.js';

const MOST_FOUND = 50;
const EVERY_MS = 10_000;

/** One entity: its place in the tree, its limits as gauges, where they come from, and its last denials. */
export function EntityPage({ view }: { readonly view: SessionView }) {
  const { id = '', resource = '', search = '' } = route.value.params;
  return (
    <div class="page">
      <Search key={`${search}\n${id}`} view={view} search={search === '' ? id : search} />
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
  const [text, setText] = useState(search);
  const isAdmin = view.role === 'admin';
  const prefix =
    view.entityPrefix === null ? {} : { hint: `This token covers ids that begin with ${view.entityPrefix}` };
  return (
    <Form
      label="Find an entity"
      onSubmit={() => navigate('entity', isAdmin ? { search: text.trim() } : { id: text.trim() })}
    >
      <Field label={isAdmin ? 'Id or name' : 'Entity id'} value={text} onInput={setText} {...prefix} />
      <button type="submit" class="primary">
        {isAdmin ? 'Search' : 'Open'}
      </button>
      {isAdmin ? (
        <button type="button" onClick={() => navigate('entity', { id: text.trim() })}>
          Open this id
        </button>
      ) : null}
    </Form>
  );
}

function Found({ search }: { readonly search: string }) {
  const load = useLoad(`found ${search}`, (signal) => searchEntities(api.value, search, MOST_FOUND, signal));
  return (
    <Panel title={search === '' ? 'Entities with a record' : `Entities with “${search}”`} scope="store">
      <Loaded load={load}>
        {({ items, hasMore }) =>
          items.length === 0 ? (
            <Empty>None has a record with this text. An entity without a record can be opened by its id.</Empty>
          ) : (
            <>
              <Table
                caption="Entities"
                rows={items}
                keyOf={(entity) => entity.id}
                columns={[
                  { title: 'Id', cell: (entity) => <EntityLink id={entity.id} /> },
                  { title: 'Name', cell: (entity) => entity.name ?? '' },
                  {
                    title: 'Parent',
                    cell: (entity) => (entity.parentId === null ? '' : <EntityLink id={entity.parentId} />),
                  },
                  {
                    title: 'State',
                    cell: (entity) =>
                      isRunning(entity.paused, Date.now()) ? <span class="tag warn">paused</span> : '',
                  },
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
  const key = isAdmin ? `chain ${id}` : null;
  const chain = useLoad(key, (signal) => readChain(api.value, id, false, signal), {
    version: changed.value,
    everyMs: EVERY_MS,
  });
  if (!isAdmin) {
    return (
      <div class="grid">
        <OwnStatus key={resource} id={id} resource={resource} />
        <EntityDenials id={id} />
      </div>
    );
  }
  return (
    <div class="grid two">
      <Loaded load={chain}>{(links) => <EntityTree chain={links} />}</Loaded>
      <EntityBuckets id={id} resource={resource} paused={chain.data?.[0]?.record?.paused} />
      <Loaded load={chain}>{(links) => <EntityConfig key={resource} chain={links} resource={resource} />}</Loaded>
      <EntityDenials id={id} />
    </div>
  );
}
