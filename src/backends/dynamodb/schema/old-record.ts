import { readKey } from '../table/attributes.js';
import { FOREIGN_MARKS, isForeign } from '../table/foreign-record.js';
import type { Item } from '../client/transport.js';
import { type LegacyKey, parseLegacyKey } from './legacy-key.js';

/** An old record with its parsed key. */
export interface OldRecord {
  readonly key: LegacyKey;
  readonly item: Item;
}

/** null: a record of this version, or of no published layout. */
export function readOldRecord(item: Item): OldRecord | null {
  const key = parseLegacyKey(readKey(item));
  return key === null || !isOld(key, item) ? null : { key, item };
}

/** The attributes that `readOldRecord` reads. */
export const OLD_RECORD_ATTRIBUTES = FOREIGN_MARKS;

/** Some records keep their key. Attributes that only old clients write distinguish them. */
function isOld(key: LegacyKey, item: Item): boolean {
  if (key.kind === 'version' || key.ns === null) return true;
  switch (key.kind) {
    case 'shard':
    case 'entity':
    case 'namespace':
    case 'config':
    case 'audit':
      return isForeign(item);
    case 'unreadable':
    case 'limit-bucket':
    case 'bucket':
    case 'limit':
    case 'usage':
      return true;
  }
}

/**
 * Identifies the records of one conversion. They are adjacent in a scan: they share a partition and a prefix of the
 * sort key.
 */
export function conversionIdOf({ key, item }: OldRecord): string {
  const { PK, SK } = readKey(item);
  if (key.kind === 'limit-bucket') return `${PK}\n#BUCKET#${key.resource}`;
  return key.kind === 'limit' ? `${PK}\n${JSON.stringify(key.level)}` : `${PK}\n${SK}`;
}

/** Whether more records of its conversion may follow in the scan. */
export function mayContinue({ key }: OldRecord): boolean {
  return key.kind === 'limit-bucket' || key.kind === 'limit';
}
