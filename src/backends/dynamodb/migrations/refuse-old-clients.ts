import { json, readText, text } from '../table/attributes.js';
import { keyItem } from '../table/keys.js';
import { deadlineIn } from '../../../machine-time.js';
import { errorOf } from '../client/failures.js';
import { REQUEST_MS, readItem, sendRepeatable, type Table } from '../client/requests.js';
import { OLD_VERSION_KEY } from '../schema/schema.js';
import { withRetries } from '../schema/retry.js';
import type { Survey } from './survey.js';

/**
 * Published clients refuse another major version of the schema. A minimum client version is not enough: releases up to
 * 0.9.1 compute that they are too old, and continue. They compare the minimum first, so it must be low.
 */
const REFUSED = { schema_version: text('999.0.0'), client_min_version: text('0.0.0') } as const;
const WHY = 'headgate migrate';

/**
 * Old clients read their own version record. It stays, with its previous content in `before`, and makes new old clients
 * fail.
 */
export async function refuseOldClients(table: Table, { versions, hasRecordsWithoutNamespace }: Survey): Promise<void> {
  const partitions = new Set([...versions, ...(hasRecordsWithoutNamespace ? [OLD_VERSION_KEY.PK] : [])]);
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
