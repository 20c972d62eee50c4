import { json, keyItem, readText, text } from '../table/attributes.js';
import { deadlineIn } from '../client/deadline.js';
import { errorOf } from '../client/failures.js';
import { readItem, sendRepeatable, type Table } from '../client/requests.js';
import { OLD_VERSION_KEY } from '../table/schema.js';
import { withRetries, REQUEST_MS } from './retry.js';
import type { Survey } from './survey.js';

/**
 * Another major version of the schema is what published clients refuse. A minimum version of the client alone is not:
 * releases up to 0.9.1 compute that they are too old, and go on; and it is compared first, so that it must be low.
 */
const REFUSED = { schema_version: text('999.0.0'), client_min_version: text('0.0.0') } as const;
const WHY = 'headgate migrate';

/** Old clients read a version record of their own. It stays for good, with what it said before, and refuses new ones. */
export async function refuseOldClients(table: Table, { versions, homeless }: Survey): Promise<void> {
  const partitions = new Set([...versions, ...(homeless ? [OLD_VERSION_KEY.PK] : [])]);
  for (const PK of partitions) {
    const key = { PK, SK: OLD_VERSION_KEY.SK };
    const before = await withRetries(async () => readItem(table, key, deadlineIn(REQUEST_MS)));
    if (before !== undefined && readText(before, 'updated_by') === WHY) continue;
    const item = { ...before, ...keyItem(key), ...REFUSED, updated_by: text(WHY), before: json(before ?? null) };
    const input = { TableName: table.name, Item: item };
    const answer = await withRetries(async () => sendRepeatable(table, 'PutItem', input, deadlineIn(REQUEST_MS)));
    if (!answer.ok) throw errorOf(answer.failure, 'PutItem');
  }
}
