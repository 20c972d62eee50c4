import type { Migration, OldRecord } from './unit.js';

/**
 * Every migration there is, in the order in which they run: the newest layout first, so that what an upgrade of the old
 * limiter left behind of an older one meets the bucket that replaced it, and is taken from that.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    id: '0001',
    title: 'records of v0.9 and later',
    filter: {},
    claims: ({ key }) =>
      key.ns !== null && ['shard', 'entity', 'config', 'usage', 'audit', 'namespace'].includes(key.kind),
  },
  {
    id: '0002',
    title: 'composite buckets under the entity, and records without a namespace',
    filter: { sortKeys: ['#BUCKET#', '#META', '#CONFIG', '#USAGE#', '#AUDIT#'] },
    claims: ({ key }) =>
      key.kind === 'bucket' || (key.ns === null && ['entity', 'config', 'usage', 'audit'].includes(key.kind)),
  },
  {
    id: '0003',
    title: 'buckets and limits with an item for each limit',
    filter: { sortKeys: ['#BUCKET#', '#LIMIT#'] },
    claims: ({ key }) => key.kind === 'limit-bucket' || key.kind === 'limit',
  },
];

export function migrationOf(record: OldRecord): Migration | undefined {
  return MIGRATIONS.find((migration) => migration.claims(record));
}
