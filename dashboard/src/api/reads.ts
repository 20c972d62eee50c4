import type { Api } from './http.js';
import { readPages } from './http.js';
import type { BucketView, EffectiveView, EntityView, Page, PausedBy, StatusView, StoredPause } from './types.js';

/** The longest chain of parents. */
const MAX_CHAIN = 8;

/** The record of an entity; null: it has none. */
async function readEntity(api: Api, id: string, signal?: AbortSignal): Promise<EntityView | null> {
  const { items } = await api.get<Page<EntityView>>('/v1/entities', { id }, signal);
  return items[0] ?? null;
}

/** The stored pause of an entity, or with a resource that of its bucket. It may be over. */
export async function readPause(
  api: Api,
  { entityId, resource }: Pick<PausedBy, 'entityId' | 'resource'>,
  signal?: AbortSignal,
): Promise<StoredPause | undefined> {
  if (resource === null) return (await readEntity(api, entityId, signal))?.paused;
  const query = { entityId, resource };
  const { bucket } = await api.get<{ readonly bucket: BucketView | null }>('/v1/bucket', query, signal);
  return bucket?.paused;
}

/** A level of the cascade. `record` null: the entity has no record. */
export interface ChainLink {
  readonly id: string;
  readonly record: EntityView | null;
}

/** The entity, then its parents. `onlyCascade`: as far as its spending counts for them. */
export async function readChain(
  api: Api,
  id: string,
  onlyCascade: boolean,
  signal?: AbortSignal,
): Promise<ChainLink[]> {
  const chain: ChainLink[] = [];
  for (let next: string | null = id; next !== null && chain.length < MAX_CHAIN;) {
    const record: EntityView | null = await readEntity(api, next, signal);
    chain.push({ id: next, record });
    next = record === null || (onlyCascade && !record.cascade) ? null : record.parentId;
  }
  return chain;
}

/** As far as the spending of the entity counts for its parents. */
export function cascadeOf(chain: readonly ChainLink[]): readonly ChainLink[] {
  const end = chain.findIndex(({ record }) => record?.cascade !== true);
  return chain.slice(0, end === -1 ? undefined : end + 1);
}

export function readEffective(
  api: Api,
  entityId: string,
  resource: string,
  signal?: AbortSignal,
): Promise<EffectiveView> {
  return api.get<EffectiveView>('/v1/config/effective', { entityId, resource }, signal);
}

export async function readStatuses(
  api: Api,
  entityId: string,
  resource: string,
  signal?: AbortSignal,
): Promise<readonly StatusView[]> {
  const { statuses } = await api.get<{ readonly statuses: readonly StatusView[] }>(
    '/v1/status',
    { entityId, resource },
    signal,
  );
  return statuses;
}

/**
 * The entities whose id or name has the text. Each page of the server may be short, so that it reads on until there are
 * enough.
 */
export function searchEntities(api: Api, search: string, enough: number, signal?: AbortSignal) {
  return readPages<EntityView>((after) => api.get('/v1/entities', { search, limit: '1000', after }, signal), enough);
}
