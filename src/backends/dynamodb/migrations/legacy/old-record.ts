import { readKey } from '../../table/attributes.js';
import { FOREIGN_MARKS, isForeign } from '../../table/foreign-record.js';
import type { Item } from '../../client/transport.js';
import { type LegacyKey, parseLegacyKey } from './legacy-key.js';
import type { OldRecord } from '../convert/conversion.js';

/** null: a record of this version, or one that no published layout had. */
export function readOldRecord(item: Item): OldRecord | null {
  const key = parseLegacyKey(readKey(item));
  return key === null || !isOld(key, item) ? null : { key, item };
}

/** All that `readOldRecord` looks at. */
export const TELLING_ATTRIBUTES = FOREIGN_MARKS;

/** Some records stand where they stood, and are told apart by what only the new ones have. */
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

/** Records of one unit follow upon each other in a scan: they share a partition and the beginning of their sort key. */
export function unitIdOf({ key, item }: OldRecord): string {
  const { PK, SK } = readKey(item);
  if (key.kind === 'limit-bucket') return `${PK}\n#BUCKET#${key.resource}`;
  return key.kind === 'limit' ? `${PK}\n${JSON.stringify(key.level)}` : `${PK}\n${SK}`;
}

/** Whether more records of its unit may follow. */
export function mayGoOn({ key }: OldRecord): boolean {
  return key.kind === 'limit-bucket' || key.kind === 'limit';
}
