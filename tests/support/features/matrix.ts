/** Every feature that is a condition in the write of an ask. Each has a case for every write path. */
export const FEATURES = ['pause', 'priority', 'shadow', 'bypass', 'atMost', 'near', 'charge', 'portable'] as const;
export type Feature = (typeof FEATURES)[number];

/** Every way in which a bucket is written or removed: the columns of the tables of features. */
export const PATHS = [
  'take',
  'full',
  'settle',
  'refund',
  'extend',
  'reclaim',
  'split',
  'merge',
  'reset',
  'rebase',
  'ttl',
  'eviction',
] as const;
export type Path = (typeof PATHS)[number];

/** Whether the store has the path. Only DynamoDB has shards, and it removes no bucket before its ttl. */
export function hasPath(store: 'memory' | 'file' | 'dynamodb', path: Path): boolean {
  if (path === 'split' || path === 'merge') return store === 'dynamodb';
  return path !== 'eviction' || store !== 'dynamodb';
}
