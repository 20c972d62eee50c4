import type { TargetNamespaces } from './legacy/target-namespaces.js';
import type { LegacyKey } from '../schema/legacy-key.js';
import type { ScanFilter } from '../schema/scan-table.js';

/** One of the numbered migrations. */
export interface Migration {
  /** Four digits, in the order in which the migrations were written. */
  readonly id: string;
  readonly title: string;
  /** What the scan for its records returns. */
  readonly filter: ScanFilter;
  /** Whether this migration converts old records with such a key. */
  claims(key: Pick<LegacyKey, 'ns' | 'kind'>, namespaces: TargetNamespaces): boolean;
}

const IN_NAMESPACE: readonly string[] = ['shard', 'entity', 'config', 'usage', 'audit', 'namespace', 'unreadable'];
const WITHOUT_NAMESPACE: readonly string[] = ['entity', 'config', 'usage', 'audit', 'unreadable'];

/**
 * All migrations in the order in which they run. The newest layout is first: records of an older layout that an upgrade
 * of the old limiter left behind then find the bucket that replaced them, and are debited from it.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    id: '0001',
    title: 'records of v0.9 and later',
    filter: {},
    claims: (key, namespaces) => key.ns !== null && !namespaces.isMoved(key.ns) && IN_NAMESPACE.includes(key.kind),
  },
  {
    id: '0004',
    title: 'records under a namespace id that is not registered',
    filter: {},
    claims: (key, namespaces) => key.ns !== null && namespaces.isMoved(key.ns) && IN_NAMESPACE.includes(key.kind),
  },
  {
    id: '0002',
    title: 'composite buckets under the entity, and records without a namespace',
    filter: { sortKeys: ['#BUCKET#', '#META', '#CONFIG', '#USAGE#', '#AUDIT#', '#LIMIT#'] },
    claims: (key) => key.kind === 'bucket' || (key.ns === null && WITHOUT_NAMESPACE.includes(key.kind)),
  },
  {
    id: '0003',
    title: 'buckets and limits with an item for each limit',
    filter: { sortKeys: ['#BUCKET#', '#LIMIT#'] },
    claims: (key) => key.kind === 'limit-bucket' || key.kind === 'limit',
  },
];

export function migrationOf(key: Pick<LegacyKey, 'ns' | 'kind'>, namespaces: TargetNamespaces): Migration | undefined {
  return MIGRATIONS.find((migration) => migration.claims(key, namespaces));
}
