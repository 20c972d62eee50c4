import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { SchemaMismatch } from '../../../core/errors.js';
import { deadlineIn } from '../client/deadline.js';
import { sendRead, type Table } from '../client/requests.js';
import { INDEXES } from '../table/table-definition.js';
import { REQUEST_MS } from './retry.js';

/** What an index of an old table is to this version. */
export interface IndexFinding {
  readonly index: string;
  /** `costly`: it works, but DynamoDB writes every take to it too. `missing`: lists fail without it. */
  readonly state: 'costly' | 'missing';
  readonly advice: string;
}

/** Indexes that cannot stay as they are. DynamoDB changes no projection in place. */
export async function inspectIndexes(table: Table): Promise<readonly IndexFinding[]> {
  const { Table: found } = await sendRead(table, 'DescribeTable', { TableName: table.name }, deadlineIn(REQUEST_MS));
  return findingsOf(found ?? {});
}

export function findingsOf({ GlobalSecondaryIndexes = [] }: TableDescription): readonly IndexFinding[] {
  return INDEXES.flatMap((name): IndexFinding[] => {
    const index = GlobalSecondaryIndexes.find(({ IndexName }) => IndexName === name);
    if (index === undefined) {
      const advice = `add ${name} (keys ${name}PK and ${name}SK, projection KEYS_ONLY), then run headgate migrate again`;
      return [{ index: name, state: 'missing', advice }];
    }
    const projection = index.Projection?.ProjectionType ?? 'ALL';
    if (projection === 'KEYS_ONLY') return [];
    const advice = `${name} projects ${projection}: it may stay, at the price of a second write with each take; delete it and add it again with KEYS_ONLY while nothing uses the table`;
    return [{ index: name, state: 'costly', advice }];
  });
}

/** Before anything is written: a table that this version could not use is not made one of its own. */
export function refuseMissing(table: string, findings: readonly IndexFinding[]): void {
  const missing = findings.filter(({ state }) => state === 'missing').map(({ index }) => index);
  if (missing.length === 0) return;
  const message = `Table ${table} has no index ${missing.join(', ')}, so that nothing was migrated`;
  throw new SchemaMismatch(message, `headgate upgrade, or add ${missing.join(', ')} by hand`);
}
