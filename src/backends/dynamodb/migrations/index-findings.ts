import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { SchemaMismatch } from '../../../core/errors.js';
import { INDEXES } from '../table/table-definition.js';

/** How an index of an old table differs from this version's. */
export interface IndexFinding {
  readonly index: string;
  /** `costly`: it works, but DynamoDB writes every take to it too. `missing`: lists fail without it. */
  readonly state: 'costly' | 'missing';
  readonly advice: string;
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
    const advice = `${name} projects ${projection}: it may stay, but each take then costs a second write; to change it, delete it and add it again with KEYS_ONLY while the table is not in use`;
    return [{ index: name, state: 'costly', advice }];
  });
}

/** Runs before anything is written, so that a table which this version cannot use stays as it is. */
export function refuseMissing(table: string, findings: readonly IndexFinding[]): void {
  const missing = findings.filter(({ state }) => state === 'missing').map(({ index }) => index);
  if (missing.length === 0) return;
  const message = `Table ${table} has no index ${missing.join(', ')}: nothing was migrated`;
  throw new SchemaMismatch(message, `headgate upgrade, or add ${missing.join(', ')} by hand`);
}
