import { searchEntities } from '../api/reads.js';
import type { EntityView, SessionView } from '../api/types.js';
import { formatCount } from '../model/format.js';
import { apartFromParents, limitsIn } from '../model/usage-series.js';
import { navigate, route, setParams } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Choice, Field, Form } from '../ui/field.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { useFields } from '../ui/use-fields.js';
import { type Asked, CsvButton, namesOf, readUsage } from './usage-csv.js';
import { UsageDetails } from './usage-details.js';

const MOST_SHOWN = 5_000;
const MOST_ENTITIES = 5_000;
const EVERY_MS = 30_000;
const WINDOWS = [
  ['hourly', 'by hour'],
  ['daily', 'by day'],
  ['monthly', 'by month'],
] as const;

/** null: they are more than the page reads, or the token may not list them. */
async function readAllEntities({ role }: SessionView, signal: AbortSignal): Promise<readonly EntityView[] | null> {
  if (role !== 'admin') return null;
  const { items, hasMore } = await searchEntities(api.value, '', MOST_ENTITIES, signal);
  return hasMore ? null : items;
}

/** Consumption by hour, day or month: of one entity, of two to compare, or of all entities on a resource. */
export function UsagePage({ view }: { readonly view: SessionView }) {
  const { params } = route.value;
  const { entity = '', compare = '', resource = '', window = 'hourly', limit = '', from = '', to = '' } = params;
  const asked = { entity, resource, window, from, to };
  const isAdmin = view.role === 'admin';
  // Only an admin may list the resources of an entity.
  const isAsked = entity === '' ? resource !== '' && view.entityPrefix === null : resource !== '' || isAdmin;
  const key = [entity, compare, resource, window, from, to].join('\n');
  const load = useLoad(
    isAsked ? `usage ${key}` : null,
    async (signal) => {
      const names = namesOf(asked, compare);
      const read = (name: string) => readUsage(api.value, { ...asked, entity: name }, MOST_SHOWN, signal);
      const pages = await Promise.all(names.map(read));
      const found = pages.map(({ items }, at) => ({ label: names[at] ?? '', usage: items }));
      const groups =
        entity === '' ? apartFromParents(found[0]?.usage ?? [], await readAllEntities(view, signal)) : found;
      return { groups, hasMore: pages.some((page) => page.hasMore) };
    },
    { everyMs: EVERY_MS },
  );
  return (
    <div class="page">
      <UsageForm view={view} asked={asked} compare={compare} limit={limit} onShow={load.reload} />
      {isAsked ? (
        <Loaded load={load}>
          {({ groups, hasMore }) => {
            const all = groups.flatMap(({ usage }) => usage);
            if (all.length === 0)
              return (
                <Panel title="Usage">
                  <Empty>There is no usage in these windows. It is recorded for rates, not for slots.</Empty>
                </Panel>
              );
            return (
              <>
                <div class="toolbar">
                  <Choice
                    label="Measure"
                    value={limit}
                    options={[['', 'grants'], ...limitsIn(all).map((name) => [name, name] as const)]}
                    onInput={(value) => setParams({ limit: value }, 'replace')}
                  />
                  <CsvButton asked={asked} compare={compare} />
                </div>
                {hasMore ? (
                  <p class="notice">The first {formatCount(MOST_SHOWN)} records are counted. The CSV has all.</p>
                ) : null}
                <UsageDetails groups={groups} limit={limit} />
              </>
            );
          }}
        </Loaded>
      ) : (
        <Panel title="Usage">
          <Empty>
            {isAdmin
              ? 'Name a resource, or an entity to see all its resources.'
              : 'Name a resource and an entity to see what was used of its limits.'}
          </Empty>
        </Panel>
      )}
    </div>
  );
}

interface UsageFormProps {
  readonly view: SessionView;
  readonly asked: Asked;
  readonly compare: string;
  readonly limit: string;
  readonly onShow: () => void;
}

function UsageForm({ view, asked: { window, ...asked }, compare, limit, onShow }: UsageFormProps) {
  const { values, field } = useFields({ ...asked, compare });
  const show = (): void => {
    navigate('usage', { ...values, window, limit });
    onShow();
  };
  return (
    <Form label="Choose usage" onSubmit={show}>
      <Field
        label="Resource"
        {...field('resource')}
        required={view.role === 'app' || values.entity === ''}
        hint={view.role === 'app' ? '' : 'Empty: all of the entity'}
      />
      <Field
        label="Entity"
        {...field('entity')}
        required={view.entityPrefix !== null || values.compare !== ''}
        hint={view.entityPrefix === null ? 'Empty: all entities' : `Begins with ${view.entityPrefix}`}
      />
      <Field label="Compare with" {...field('compare')} hint="Another entity" />
      <Choice
        label="Window"
        value={window}
        options={WINDOWS}
        onInput={(value) => setParams({ window: value }, 'replace')}
      />
      <Field label="From (UTC)" {...field('from')} kind="instant" hint="Empty: the first window" />
      <Field label="Before (UTC)" {...field('to')} kind="instant" hint="Empty: the last window" />
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
}
