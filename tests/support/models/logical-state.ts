import type { Backend, Call } from '../../../src/backend.js';
import type { Fields } from '../../../src/core/manifest/managed-fields.js';
import { fieldsOfConfig, fieldsOfRecord } from '../../../src/core/manifest/managed-fields.js';
import { buildManagedKey } from '../../../src/core/manifest/managed.js';
import { buildFirstNamespaceId } from '../../../src/core/identifiers.js';

const CALL: Call = { namespaceId: buildFirstNamespaceId('default'), nowMs: 0, timeoutMs: 10_000 };
const EVERYTHING = { limit: 1_000_000, after: null };

/** Every object of the default namespace that a file can own, by its key. Limits are sorted. */
export async function objectsOf(backend: Backend): Promise<Map<string, Fields>> {
  const records = await backend.entities.list(CALL, EVERYTHING);
  const levels = await backend.config.all(CALL, EVERYTHING);
  return new Map([
    ...records.items.map(
      (record) =>
        [buildManagedKey({ kind: 'record', entityId: record.id }), fieldsOfRecord(record, Date.now())] as const,
    ),
    ...levels.items.map(({ level, config }) => {
      const sorted = { ...config, limits: config.limits?.toSorted((a, b) => (a.name < b.name ? -1 : 1)) ?? null };
      return [buildManagedKey(level), fieldsOfConfig(sorted, level)] as const;
    }),
  ]);
}

export async function marksOf(backend: Backend): Promise<Map<string, Fields>> {
  const { items } = await backend.managed.list(CALL, EVERYTHING);
  return new Map(items.map(({ key, value }) => [key, value as Fields]));
}

/** Everything that an apply may change, in an order that does not depend on the store. */
export async function logicalState(backend: Backend): Promise<unknown> {
  const [objects, marks] = [await objectsOf(backend), await marksOf(backend)];
  const { items } = await backend.audit.list({ ...CALL, nowMs: Date.now() }, null, EVERYTHING);
  return { objects: inOrder(objects), marks: inOrder(marks), audit: items.length };
}

function inOrder<T>(map: ReadonlyMap<string, T>): (readonly [string, T])[] {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
