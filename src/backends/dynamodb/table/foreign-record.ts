import { SchemaMismatch } from '../../../core/errors.js';
import { storeArgument } from '../address.js';
import { readKey } from './attributes.js';
import { AUDIT_PREFIX, NAMESPACE_ID_PREFIX, NAMESPACE_PREFIX, STATE } from './keys.js';
import type { Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';

/** The attributes that `isForeign` reads. */
export const FOREIGN_MARKS = ['PK', 'SK', 'w', 'v', 'created_at', 'timestamp', 'disabled', 'resource', 'pgen'] as const;

/**
 * Whether a client of an older layout wrote a record under the key of one of ours, or changed one of ours. Such a
 * record is never interpreted: its periods are seconds, its times are texts, and its settings have other meanings.
 */
export function isForeign(item: Item): boolean {
  const { SK } = readKey(item);
  if (SK === STATE) return item['w'] === undefined;
  if (SK === '#META') return item['created_at']?.N === undefined || item['pgen'] !== undefined;
  // An old client that changes one setting of our config leaves the rest, and adds these two attributes.
  if (SK.startsWith('#CONFIG')) {
    return item['v'] === undefined || item['disabled'] !== undefined || item['resource'] !== undefined;
  }
  if (SK.startsWith(AUDIT_PREFIX)) return item['timestamp']?.N === undefined;
  const isNamespace = SK.startsWith(NAMESPACE_PREFIX) || SK.startsWith(NAMESPACE_ID_PREFIX);
  return isNamespace && item['created_at']?.N === undefined;
}

/** Returns the record, or throws an error with the command that converts it. */
export function requireOwn<T extends Item | undefined>(table: Table, item: T): T {
  if (item === undefined || !isForeign(item)) return item;
  const { PK, SK } = readKey(item);
  const message = `A client of an older layout still writes to table ${table.name}: it wrote the record ${PK} ${SK}`;
  throw new SchemaMismatch(`${message}. Stop that client`, `headgate migrate --store ${storeArgument(table)}`);
}

/** For lists: foreign records are left out, so that the rest can be shown. */
export function ownOrNothing(item: Item | undefined): Item | undefined {
  return item === undefined || isForeign(item) ? undefined : item;
}
