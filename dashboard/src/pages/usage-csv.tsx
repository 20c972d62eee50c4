import { type Api, readPages } from '../api/http.js';
import type { BucketView, Page, UsageView } from '../api/types.js';
import { usageCsv } from '../model/csv.js';
import { formatCount } from '../model/format.js';
import { instantOf } from '../model/instant.js';
import { api } from '../state/session.js';
import { ActionResult } from '../ui/action-result.js';
import { saveFile } from '../ui/save-file.js';
import { useAction } from '../ui/use-action.js';
import { resourceOf } from './entity-buckets.js';

const MOST_IN_CSV = 1_000_000;
const MOST_BUCKETS = 1_000;

export interface Asked {
  readonly entity: string;
  readonly resource: string;
  readonly window: string;
  /** Times in UTC, as the fields of the form have them. Windows begin at or after `from`, and before `to`. */
  readonly from: string;
  readonly to: string;
}

/** The usage of an entity or of all, on a resource. Without a resource: of the entity on every resource of its buckets. */
export async function readUsage(using: Api, asked: Asked, enough: number, signal?: AbortSignal) {
  const { entity, resource, window, from, to } = asked;
  const resources = resource === '' ? await readResources(using, entity, signal) : [resource];
  const pages = await Promise.all(
    resources.map((name) => {
      const query = {
        entityId: entity,
        resource: name,
        window,
        from: instantOf(from),
        to: instantOf(to),
        limit: '1000',
      };
      const read = (after: string | undefined) => using.get<Page<UsageView>>('/v1/usage', { ...query, after }, signal);
      return readPages(read, enough, Infinity);
    }),
  );
  const items = pages.flatMap((page) => page.items);
  return { items: items.slice(0, enough), hasMore: items.length > enough || pages.some(({ hasMore }) => hasMore) };
}

async function readResources(using: Api, entityId: string, signal?: AbortSignal): Promise<readonly string[]> {
  const read = (after: string | undefined) =>
    using.get<Page<BucketView>>('/v1/buckets', { entityId, limit: '1000', after }, signal);
  const { items } = await readPages(read, MOST_BUCKETS);
  return [...new Set(items.map(resourceOf))];
}

/** The entity, and the one that it is compared with. An empty name means all entities. */
export function namesOf({ entity }: Asked, compare: string): readonly string[] {
  return compare === '' || entity === '' ? [entity] : [entity, compare];
}

function fileNameOf({ resource, window, from, to }: Asked): string {
  return `${['usage', resource, window, from, to].filter((part) => part !== '').join('-')}.csv`;
}

/** The CSV has every record of the query: of the entity, and of the one that it is compared with. */
export function CsvButton({ asked, compare }: { readonly asked: Asked; readonly compare: string }) {
  const action = useAction();
  const save = (): void =>
    action.run(async () => {
      const rows: UsageView[] = [];
      for (const entity of namesOf(asked, compare)) {
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
