import { deadlineIn } from '../../../machine-time.js';
import { REQUEST_MS, sendRead, type Table } from '../client/requests.js';

import { findingsOf, type IndexFinding } from './index-findings.js';

/** Indexes that need a change. DynamoDB cannot change a projection in place. */
export async function inspectIndexes(table: Table): Promise<readonly IndexFinding[]> {
  const { Table: found } = await sendRead(table, 'DescribeTable', { TableName: table.name }, deadlineIn(REQUEST_MS));
  return findingsOf(found ?? {});
}
