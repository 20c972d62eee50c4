import { expect, test } from 'vitest';
import { tableDefinition } from '../table/table-definition.js';
import { findingsOf, refuseMissing } from './index-findings.js';

const indexesOf = (projections: Readonly<Record<string, 'ALL' | 'KEYS_ONLY'>>) =>
  Object.entries(projections).map(([IndexName, ProjectionType]) => ({ IndexName, Projection: { ProjectionType } }));

test('indexes with the definition of this version give no finding', () => {
  const { GlobalSecondaryIndexes = [] } = tableDefinition('t');
  expect(findingsOf({ GlobalSecondaryIndexes })).toEqual([]);
});

test('an index that projects ALL may stay, a missing index may not', () => {
  const GlobalSecondaryIndexes = indexesOf({ GSI1: 'ALL', GSI2: 'ALL', GSI3: 'KEYS_ONLY' });
  const findings = findingsOf({ GlobalSecondaryIndexes });
  expect(findings).toMatchObject([
    { index: 'GSI1', state: 'costly' },
    { index: 'GSI2', state: 'costly' },
    { index: 'GSI4', state: 'missing' },
  ]);
  expect(() => refuseMissing('t', findings)).toThrow(/Table t has no index GSI4: nothing was migrated/);
  expect(() => refuseMissing('t', findings.slice(0, 2))).not.toThrow();
});
