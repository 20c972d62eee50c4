import { useState } from 'preact/hooks';
import { type Api, readPages } from '../api/http.js';
import type { Page, SessionView, UsageView } from '../api/types.js';
import { usageCsv } from '../model/csv.js';
import { formatCount } from '../model/format.js';
import { instantOf } from '../model/instant.js';
import { limitsIn } from '../model/usage-series.js';
import { navigate, route, setParams } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { ActionResult } from '../ui/action-result.js';
import { saveFile } from '../ui/save-file.js';
import { Choice, Field, Form } from '../ui/field.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { useAction } from '../ui/use-action.js';
import { UsageDetails } from './usage-details.js';

const MOST_SHOWN = 5_000;
const MOST_IN_CSV = 1_000_000;
const WINDOWS = [
  ['hourly', 'by hour'],
  ['daily', 'by day'],
  ['monthly', 'by month'],
] as const;

interface Asked {
  readonly entity: string;
  readonly resource: string;
  readonly window: string;
  /** Times in UTC, as the fields of the form have them. Windows begin at or after `from`, and before `to`. */
  readonly from: string;
  readonly to: string;
}

function readUsage(using: Api, { entity, resource, window, from, to }: Asked, enough: number, signal?: AbortSignal) {
  const query = { entityId: entity, resource, window, from: instantOf(from), to: instantOf(to), limit: '1000' };
  const read = (after: string | undefined) => using.get<Page<UsageView>>('/v1/usage', { ...query, after }, signal);
  return readPages(read, enough, Number.POSITIVE_INFINITY);
}

/** Consumption by hour, day or month: of one entity, of two to compare, or of all entities on a resource. */
export function UsagePage({ view }: { readonly view: SessionView }) {
  const { params } = route.value;
  const { entity = '', compare = '', resource = '', window = 'hourly', limit = '', from = '', to = '' } = params;
  const asked = { entity, resource, window, from, to };
  const isAsked = resource !== '' && (entity !== '' || view.entityPrefix === null);
  const key = [entity, compare, resource, window, from, to].join('\n');
  const load = useLoad(isAsked ? `usage ${key}` : null, async (signal) => {
    const names = compare === '' || entity === '' ? [entity] : [entity, compare];
    const found = await Promise.all(
      names.map((name) => readUsage(api.value, { ...asked, entity: name }, MOST_SHOWN, signal)),
    );
    return names.map((name, at) => ({
      label: name === '' ? 'all entities' : name,
      usage: found[at]?.items ?? [],
      hasMore: found[at]?.hasMore === true,
    }));
  });
  return (
    <div class="page">
      <UsageForm key={[entity, compare, resource, from, to].join('\n')} view={view} />
      {isAsked ? (
        <Loaded load={load}>
          {(groups) => {
            const all = groups.flatMap(({ usage }) => usage);
            if (all.length === 0)
              return <Empty>There is no usage in these windows. It is recorded for rates, not for slots.</Empty>;
            return (
              <>
                <div class="toolbar">
                  <Choice
                    label="Measure"
                    value={limit}
                    options={[['', 'grants'], ...limitsIn(all).map((name) => [name, name] as const)]}
                    onChange={(value) => setParams({ limit: value }, 'replace')}
                  />
                  <CsvButton asked={asked} compare={compare} />
                </div>
                {groups.some(({ hasMore }) => hasMore) ? (
                  <p class="notice">The first {formatCount(MOST_SHOWN)} records are counted. The CSV has all.</p>
                ) : null}
                <UsageDetails groups={groups} limit={limit} />
              </>
            );
          }}
        </Loaded>
      ) : (
        <Panel title="Usage" scope="store">
          <Empty>
            Name a resource{view.entityPrefix === null ? '' : ' and an entity'} to see what was used of its limits.
          </Empty>
        </Panel>
      )}
    </div>
  );
}

function UsageForm({ view }: { readonly view: SessionView }) {
  const { params } = route.value;
  const [entity, setEntity] = useState(params['entity'] ?? '');
  const [compare, setCompare] = useState(params['compare'] ?? '');
  const [resource, setResource] = useState(params['resource'] ?? '');
  const [from, setFrom] = useState(params['from'] ?? '');
  const [to, setTo] = useState(params['to'] ?? '');
  const { window = 'hourly', limit = '' } = params;
  const show = (): void => {
    const names = { entity: entity.trim(), compare: compare.trim(), resource: resource.trim() };
    navigate('usage', { ...names, window, limit, from, to });
  };
  return (
    <Form label="Choose usage" onSubmit={show}>
      <Field label="Resource" value={resource} onInput={setResource} required />
      <Field
        label="Entity"
        value={entity}
        onInput={setEntity}
        hint={view.entityPrefix === null ? 'Empty: all entities' : `Begins with ${view.entityPrefix}`}
      />
      <Field label="Compare with" value={compare} onInput={setCompare} hint="Another entity" />
      <Choice
        label="Window"
        value={window}
        options={WINDOWS}
        onChange={(value) => setParams({ window: value }, 'replace')}
      />
      <Field label="From (UTC)" value={from} onInput={setFrom} kind="instant" hint="Empty: the first window" />
      <Field label="Before (UTC)" value={to} onInput={setTo} kind="instant" hint="Empty: the last window" />
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
}

function fileNameOf({ resource, window, from, to }: Asked): string {
  return `${['usage', resource, window, from, to].filter((part) => part !== '').join('-')}.csv`;
}

/** The CSV has every record of the query: of the entity, and of the one that it is compared with. */
function CsvButton({ asked, compare }: { readonly asked: Asked; readonly compare: string }) {
  const action = useAction();
  const save = (): void =>
    action.run(async () => {
      const names = compare === '' || asked.entity === '' ? [asked.entity] : [asked.entity, compare];
      const rows: UsageView[] = [];
      for (const entity of names) {
        const { items, hasMore } = await readUsage(api.value, { ...asked, entity }, MOST_IN_CSV);
        if (hasMore) throw new Error(`There are more than ${MOST_IN_CSV} records: read them with headgate usage`);
        rows.push(...items);
      }
      saveFile(fileNameOf(asked), 'text/csv', usageCsv(rows));
      return `${formatCount(rows.length)} ${rows.length === 1 ? 'row was' : 'rows were'} saved.`;
    });
  return (
    <>
      <button type="button" onClick={save} disabled={action.isRunning}>
        Save as CSV
      </button>
      <ActionResult action={action} />
    </>
  );
}
