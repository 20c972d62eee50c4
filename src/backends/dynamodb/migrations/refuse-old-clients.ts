import { keyItem, text } from '../attributes.js';
import { deadlineIn } from '../deadline.js';
import { errorOf } from '../failures.js';
import { sendRepeatable, type Table } from '../requests.js';
import { OLD_VERSION_KEY } from '../schema.js';
import { patiently, REQUEST_MS } from './patience.js';
import type { Survey } from './survey.js';

/** No version of the published clients reaches it: they compare it with their own, and stop. */
const NO_OLD_CLIENT = '999.0.0';
const WHY = 'headgate migrate';

/** Old clients read a version record of their own. It stays for good, so that none of them begins anew. */
export async function refuseOldClients(table: Table, { versions, homeless }: Survey): Promise<void> {
  const partitions = new Set([...versions, ...(homeless ? [OLD_VERSION_KEY.PK] : [])]);
  for (const PK of partitions) {
    const input = {
      TableName: table.name,
      Key: keyItem({ PK, SK: OLD_VERSION_KEY.SK }),
      UpdateExpression:
        'SET client_min_version = :none, updated_by = :why, schema_version = if_not_exists(schema_version, :none)',
      ExpressionAttributeValues: { ':none': text(NO_OLD_CLIENT), ':why': text(WHY) },
    };
    const answer = await patiently(async () => sendRepeatable(table, 'UpdateItem', input, deadlineIn(REQUEST_MS)));
    if (!answer.ok) throw errorOf(answer.failure, 'UpdateItem');
  }
}
